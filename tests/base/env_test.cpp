#include "tests/base/expect_error.h"

#include <muster/base/env.h>
#include <muster/base/record.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::contains;
using test::error_of;

constexpr const char* kName = "MUSTER_TEST_VARIABLE";

void set(const char* text) { setenv(kName, text, 1); }

TEST(Env, GivesTextOrNothing) {
  unsetenv(kName);
  EXPECT_EQ(env_text(kName), std::nullopt);
  EXPECT_EQ(env_integer(kName), std::nullopt);
  set("");
  EXPECT_EQ(env_text(kName), std::nullopt);
  EXPECT_EQ(env_integer(kName), std::nullopt);
  set(" a b ");
  EXPECT_EQ(env_text(kName), " a b ");
}

TEST(Env, ReadsWholeNumbers) {
  set("0");
  EXPECT_EQ(env_integer(kName), 0);
  set("9223372036854775807");
  EXPECT_EQ(env_integer(kName), INT64_MAX);
  set("-5");
  EXPECT_EQ(env_integer(kName, -5), -5);
}

TEST(Env, NamesTheVariableAndItsContentWhenItIsNoSuchNumber) {
  for (const char* text :
       {"two", "1.5", "1 ", " 1", "0x10", "9223372036854775808", "-1", "1,000"}) {
    set(text);
    const Error error = error_of([] { env_integer(kName); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_TRUE(contains(error.what(), kName)) << error.what();
    EXPECT_TRUE(contains(error.what(), std::string{"'"} + text + "'")) << error.what();
  }
  set("3");
  EXPECT_EQ(env_integer(kName, 3), 3);
  EXPECT_TRUE(contains(error_of([] { env_integer(kName, 4); }).what(), "at least 4"));
  unsetenv(kName);
}

TEST(Report, TellsAValueFromNoneAndFromNoSample) {
  Report report;
  report.metrics = {{"loss", 0.5}, {"empty", std::nullopt}, {"zero", 0.0}};
  EXPECT_EQ(report.get("loss"), 0.5);
  EXPECT_EQ(report.get("zero"), 0.0);
  EXPECT_EQ(report.get("empty"), std::nullopt);
  EXPECT_EQ(report.get("other"), std::nullopt);
}

}  // namespace
}  // namespace muster
