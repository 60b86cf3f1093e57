#include <gtest/gtest.h>
#include <muster/base/redact.h>

#include <cstdlib>

namespace muster::test {

namespace {

const std::string random_text = "hf_Ab3dEfGh1jKlM7Op";

TEST(Redact, TextsUnderASecretNameAreSecrets) {
  for (const auto* name : {"password",
                           "db_password",
                           "dbPassword",
                           "PASSWD",
                           "client_secret",
                           "secret",
                           "api_key",
                           "apiKey",
                           "APIKey",
                           "API_KEYS",
                           "apikey",
                           "WANDB_API_KEY",
                           "AWS_SECRET_ACCESS_KEY",
                           "AWS_ACCESS_KEY_ID",
                           "access_token",
                           "auth-token",
                           "hf.token",
                           "token",
                           "TOKEN",
                           "ssh_key",
                           "credentials",
                           "key_passphrase",
                           "PGPASSWORD",
                           "DBPassword",
                           "JWTSecret"}) {
    EXPECT_TRUE(is_secret(name, "x")) << name;
    EXPECT_FALSE(is_secret(name, "")) << name;
  }
}

TEST(Redact, WhatALearningProgramCallsKeyOrTokenStays) {
  for (const auto* name :
       {"image_key", "sort_key", "key", "pad_token", "eos_token", "tokens", "tokenizer", "monkey",
        "keypoints", "max_tokens", "secretary", "author", "passes"}) {
    EXPECT_FALSE(is_secret(name, "alpha_matte")) << name;
    EXPECT_FALSE(is_secret(name, "<pad>")) << name;
  }
  EXPECT_FALSE(is_secret("", random_text));
  EXPECT_FALSE(is_secret("name", random_text));
}

TEST(Redact, ARandomLookingTextUnderAnyKeyOrTokenIsASecret) {
  for (const auto* name : {"key", "my_token", "licence_key", "tokens"}) {
    EXPECT_TRUE(is_secret(name, random_text)) << name;
    for (const auto* path : {"/data/keys/of/2024/train.txt", "keys/deploy_2024.pem",
                             "../of/year/2024", "segmentation_area_px2"}) {
      EXPECT_FALSE(is_secret(name, path)) << name << " " << path;
    }
    EXPECT_FALSE(is_secret(name, "two words and 16 characters")) << name;
  }
}

TEST(Redact, WhereASecretLiesIsNoSecret) {
  EXPECT_FALSE(is_secret("private_key_file", "/home/me/.ssh/id_rsa"));
  EXPECT_FALSE(is_secret("private_key_file", "keys/deploy_2024.pem"));
  EXPECT_FALSE(is_secret("token_dir", "imagenet21k/tokens/2024"));
  EXPECT_FALSE(is_secret("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/gcp.json"));
  EXPECT_FALSE(is_secret("api_key_env", "WANDB_API_KEY"));
  EXPECT_FALSE(is_secret("secret_name", "training"));
}

TEST(Redact, PasswordsOfUrlsGoAndTheRestStays) {
  EXPECT_EQ(redact_urls("https://me:pa:ss@host:80/a@b"), "https://[redacted]@host:80/a@b");
  EXPECT_EQ(redact_urls("https://me:p@ss@host/a"), "https://[redacted]@host/a");
  EXPECT_EQ(redact_urls("from https://tok3n@host, http://a:b@c and ftp://d:e@f."),
            "from https://[redacted]@host, http://[redacted]@c and ftp://[redacted]@f.");
  EXPECT_EQ(redact_urls("HTTPS://tok3n:x-oauth-basic@host"), "HTTPS://[redacted]@host");
  for (const auto* text : {"ssh://git@host/repository", "https://host/a:b@c", "a@b: c://", "://",
                           "https://host?user=a@b", "me:pass@host", ""}) {
    EXPECT_EQ(redact_urls(text), text);
  }
  EXPECT_EQ(redact_urls(redact_urls("https://tok3n@host")), "https://[redacted]@host");
}

TEST(Redact, SecretsOfTheEnvironmentAreTakenOutOfTexts) {
  setenv("MUSTER_TEST_API_KEY", random_text.c_str(), 1);
  setenv("MUSTER_TEST_PASSWORD", "short", 1);
  EXPECT_EQ(redact_text("a " + random_text + " b" + random_text), "a [redacted] b[redacted]");
  EXPECT_EQ(redact_text("a short word"), "a short word");
  unsetenv("MUSTER_TEST_API_KEY");
  unsetenv("MUSTER_TEST_PASSWORD");
  EXPECT_EQ(redact_text(random_text), random_text);
}

}  // namespace

}  // namespace muster::test
