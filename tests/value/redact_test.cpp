#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/value/convert.h>
#include <muster/value/redact.h>

#include <functional>

#include "support/texts.h"
#include "tests/base/expect_error.h"

namespace muster::test {

namespace {

using Dict = Value::Dict;
using List = Value::List;

TEST(RedactedConfiguration, KeepsAllButSecrets) {
  const Value config =
      Dict{{"lr", 0.1},
           {"max_tokens", 512},
           {"image_key", "alpha"},
           {"api_key", "abc"},
           {"pin_secret", 1234},
           {"password", ""},
           {"tokens", List{"hf_Ab3dEfGh1jKlM7Op", "a"}},
           {"credentials", Dict{{"user", "me"}, {"ttl", 3}, {"more", List{"x", Dict{{"y", "z"}}}}}},
           {"tracking", Dict{{"uri", "https://me:pw@host"}, {"access_token", "t"}}}};
  EXPECT_EQ(
      to_json(redacted(config)),
      to_json(Dict{
          {"lr", 0.1},
          {"max_tokens", 512},
          {"image_key", "alpha"},
          {"api_key", "[redacted]"},
          {"pin_secret", "[redacted]"},
          {"password", ""},
          {"tokens", List{"[redacted]", "a"}},
          {"credentials", Dict{{"user", "[redacted]"},
                               {"ttl", "[redacted]"},
                               {"more", List{"[redacted]", Dict{{"y", "[redacted]"}}}}}},
          {"tracking", Dict{{"uri", "https://[redacted]@host"}, {"access_token", "[redacted]"}}}}));
}

std::string usage_error_of(const std::function<void()>& call) {
  const Error error = error_of(call);
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  return error.what();
}

TEST(RedactedConfiguration, IsNotTakenForTheValuesThemselves) {
  const Value given = Dict{{"a", 1}, {"b", List{"x", Dict{{"c", "https://[redacted]@host"}}}}};
  EXPECT_TRUE(has(usage_error_of([&] { check_not_redacted(given, ValuePath{"model"}); }),
                  "model.b[1].c: [redacted] stands where"));
  check_not_redacted(Dict{{"a", "redacted"}}, ValuePath{"model"});
}

TEST(RedactedConfiguration, AMessageOnAWrongValueDoesNotShowASecret) {
  struct Options {
    int64_t api_key = 0;
    int64_t uri = 0;
    int64_t lr = 0;
    std::string password{};
  };
  Options options;
  const auto message = [&](const Dict& given) {
    return usage_error_of([&] { update_from_value(options, given, "model"); });
  };
  EXPECT_TRUE(
      has(message({{"api_key", "abc"}}), "api_key: expected an int, found the string [redacted]"));
  EXPECT_TRUE(
      has(message({{"uri", "https://a:b@c"}}), "found the string \"https://[redacted]@c\""));
  EXPECT_TRUE(
      has(message({{"password", 12345678}}), "expected a string, found the int [redacted]"));
  EXPECT_TRUE(has(message({{"lr", "abc"}}), "found the string \"abc\""));
}

}  // namespace

}  // namespace muster::test
