#include "tests/base/expect_error.h"

#include <muster/base/check.h>

#include <source_location>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::contains;
using test::error_of;

TEST(Check, PassesWhatIsTrue) {
  EXPECT_NO_THROW(check(true, "never seen {}", 1));
  EXPECT_NO_THROW(check(true, ErrorKind::io, "never seen {}", 1));
}

TEST(Check, SaysItsMessageWithTheValuesInIt) {
  const std::string name = "lr";
  const Error error = error_of([&] {
    check(false, "{} must be below {}, but it is {} ({}, {:.2f}, {})", name, 1, uint64_t{7}, true,
          0.5, std::string_view{"x"});
  });
  EXPECT_STREQ(error.what(), "lr must be below 1, but it is 7 (true, 0.50, x)");
}

TEST(Check, IsOfKindUsageUnlessItSaysOtherwise) {
  EXPECT_EQ(error_of([] { check(false, "no"); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([] { check(false, ErrorKind::data, "no"); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([] { fail(ErrorKind::peer_lost, "no"); }).kind(), ErrorKind::peer_lost);
}

TEST(Check, NamesThePlaceThatCalledIt) {
  std::source_location here;
  const Error usage = error_of([&] {
    here = std::source_location::current();
    check(false, "one line below");
  });
  EXPECT_EQ(usage.where().line(), here.line() + 1);
  EXPECT_STREQ(usage.where().file_name(), here.file_name());
  const Error kind = error_of([&] {
    here = std::source_location::current();
    check(false, ErrorKind::io, "one line below {}", 1);
  });
  EXPECT_EQ(kind.where().line(), here.line() + 1);
  const Error failed = error_of([&] {
    here = std::source_location::current();
    fail(ErrorKind::io, "one line below");
  });
  EXPECT_EQ(failed.where().line(), here.line() + 1);
}

TEST(Check, LeavesBracesOfItsValuesAlone) {
  const std::string text = "{} {0} {{";
  EXPECT_STREQ(error_of([&] { check(false, "got '{}'", text); }).what(), "got '{} {0} {{'");
}

TEST(Error, WritesAPlaceAsFileAndLine) {
  const Error error = error_of([] { check(false, "here"); });
  const std::string place = to_string(error.where());
  EXPECT_TRUE(contains(place, "check_test.cpp:")) << place;
  EXPECT_EQ(place.substr(place.rfind(':') + 1), std::to_string(error.where().line()));
}

TEST(Error, EndsAProcessWithTheCodeOfItsKind) {
  const auto code = [](ErrorKind kind) { return Error{kind, ""}.exit_code(); };
  EXPECT_EQ(code(ErrorKind::user), 1);
  EXPECT_EQ(code(ErrorKind::usage), 2);
  EXPECT_EQ(code(ErrorKind::data), 65);
  EXPECT_EQ(code(ErrorKind::rendezvous), 69);
  EXPECT_EQ(code(ErrorKind::mismatch), 70);
  EXPECT_EQ(code(ErrorKind::output), 73);
  EXPECT_EQ(code(ErrorKind::io), 74);
  EXPECT_EQ(code(ErrorKind::peer_lost), 75);
}

TEST(Format, WritesNumbersTextsCharactersAndBools) {
  EXPECT_EQ(format("{}|{:>4}|{:04x}|{}|{}|{}", -3, "ab", 255, 'c', false, 0.1),
            "-3|  ab|00ff|c|false|0.1");
}

}  // namespace
}  // namespace muster
