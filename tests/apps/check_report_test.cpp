#include "apps/muster/check/report.h"

#include <gtest/gtest.h>

namespace muster::app {
namespace {

const CheckedRun same{
    .ranks = 2, .comparison = {.contents = {.files = 3, .metrics = 1, .samples = 9, .images = 0}}};

TEST(CheckReport, SaysInOneLineWhatWasCompared) {
  EXPECT_EQ(check_report(1, {same}),
            "equal at 1 and 2 ranks: 3 files, 1 metric, 9 samples, 0 images\n");
}

TEST(CheckReport, NamesTheFirstRunThatDiffersAndWhetherOthersDo) {
  CheckedRun other = same;
  other.ranks = 3;
  other.comparison.differences = {{"metric a of test", "0.5", "0.25", 2}, {"tables/x", "1", "2"}};
  other.environment = {{"threads", "1", "2"}};
  EXPECT_EQ(check_report(1, {same, other}),
            "1 rank and 3 ranks differ. The first difference is\n"
            "  metric a of test\n    1 rank   0.5\n    3 ranks  0.25\n    and 2 more like it\n"
            "Others:\n"
            "  tables/x\n    1 rank   1\n    3 ranks  2\n"
            "What may be the reason, from environment.json:\n"
            "  threads\n    1 rank   1\n    3 ranks  2\n"
            "1 rank and 2 ranks are equal.\n");
  CheckedRun too = other;
  too.ranks = 4;
  EXPECT_NE(check_report(1, {other, too}).find("\n1 rank and 4 ranks differ too.\n"),
            std::string::npos);
}

TEST(CheckReport, LetsNoTextOfAFileReachTheTerminalAsItIs) {
  CheckedRun other = same;
  other.comparison.differences = {{"metric \x1b[2J", "a\nb", "\x9b"}};
  const std::string text = check_report(1, {other});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("a\nb"), std::string::npos);
  EXPECT_EQ(text.find('\x9b'), std::string::npos);
}

}  // namespace
}  // namespace muster::app
