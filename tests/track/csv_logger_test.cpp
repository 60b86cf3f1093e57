#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/track/csv_logger.h>

#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "tests/base/expect_error.h"
#include "track/support.h"

namespace muster {
namespace {

using test::TempDir;

class CsvLog : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Logger> open() const {
    return make_csv_logger({.run_dir = dir_.path()});
  }
  [[nodiscard]] std::filesystem::path file() const { return dir_.path() / "metrics.csv"; }
  [[nodiscard]] std::string text() const { return read_file(file()); }
  void put(std::string_view content) const { write_file_atomically(file(), content); }

 protected:
  TempDir dir_;
};

TEST_F(CsvLog, HasNoFileBeforeTheFirstValue) {
  auto logger = open();
  logger->log_metrics({.step = 1});
  logger->log_text("note", 1, "text");
  logger->finish(0);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(CsvLog, WritesNamesInTheOrderOfTheirAppearance) {
  auto logger = open();
  logger->log_metrics({.step = 50, .epoch = 0, .values = {{"z", 0.1}, {"a", 3}}});
  logger->log_metrics({.step = 100, .epoch = 1, .values = {{"a", 1e-300}}});
  EXPECT_EQ(text(), "step,epoch,z,a\n50,0,0.1,3\n100,1,,1e-300\n");
}

TEST_F(CsvLog, WidensForANewNameAndKeepsOlderRows) {
  auto logger = open();
  logger->log_metrics({.step = 1, .values = {{"a", 1}}});
  logger->log_metrics({.step = 2, .values = {{"b", 2}, {"c", 3}}});
  logger->log_metrics({.step = 3, .values = {{"a", 4}, {"c", 5}}});
  EXPECT_EQ(text(), "step,epoch,a,b,c\n1,0,1,,\n2,0,,2,3\n3,0,4,,5\n");
}

TEST_F(CsvLog, ContinuesTheFileOfAnEarlierCommand) {
  put("step,epoch,a\n1,0,1\n");
  auto logger = open();
  logger->log_metrics({.step = 2, .values = {{"a", 2}}});
  logger->log_metrics({.step = 3, .values = {{"b", 3}}});
  EXPECT_EQ(text(), "step,epoch,a,b\n1,0,1,\n2,0,2,\n3,0,,3\n");
}

TEST_F(CsvLog, GoesOnFromACheckpointWithoutTheRowsAndColumnsThatCameAfterIt) {
  std::string begin;
  std::string middle;
  {
    auto logger = open();
    begin = logger->position();
    logger->log_metrics({.step = 1, .values = {{"a", 1}}});
    middle = logger->position();
    logger->log_metrics({.step = 2, .values = {{"b", 2}}});
  }
  put(text() + "3,0,torn");
  open()->go_on(middle, 1);
  EXPECT_EQ(text(), "step,epoch,a\n1,0,1\n");
  {
    auto logger = open();
    logger->go_on(middle, 1);
    logger->log_metrics({.step = 2, .values = {{"b", 2}}});
  }
  EXPECT_EQ(text(), "step,epoch,a,b\n1,0,1,\n2,0,,2\n");
  auto logger = open();
  logger->go_on(begin, 0);
  EXPECT_FALSE(std::filesystem::exists(file()));
  logger->log_metrics({.step = 5, .values = {{"c", 1}}});
  EXPECT_EQ(text(), "step,epoch,c\n5,0,1\n");
}

TEST_F(CsvLog, LeavesAFileAloneThatThePositionIsNotOf) {
  const std::string whole = "step,epoch,a\n1,0,1\n7,1,2\n";
  for (const auto* position :
       {"", "x", "1", "1:3", "1:3:2,0", "9:3:1,0", "1:9:1,0", "1:1:1,0", "-1:3:1,0", "1:3:1,0 "}) {
    put(whole);
    open()->go_on(position, 1);
    EXPECT_EQ(text(), whole) << position;
  }
}

TEST_F(CsvLog, WidensRowsWithLineBreaksInTheirCells) {
  put("step,epoch,a\n1,0,\"x\ny\"\n2,0,\r\n");
  open()->log_metrics({.step = 3, .values = {{"b", 3}}});
  EXPECT_EQ(text(), "step,epoch,a,b\n1,0,\"x\ny\",\n2,0,\r,\n3,0,,3\n");
}

TEST_F(CsvLog, FindsANameThatSomebodyWroteInBrokenUtf8) {
  put("step,epoch,a\xff\n1,0,1\n");
  open()->log_metrics({.step = 2, .values = {{"a\xff", 2}, {"b", 3}}});
  EXPECT_EQ(text(), "step,epoch,a\xef\xbf\xbd,b\n1,0,1,\n2,0,2,3\n");
}

TEST_F(CsvLog, CutsALineThatAKillLeftTorn) {
  put("step,epoch,a\n1,0,1\n2,0,0.33");
  open()->log_metrics({.step = 2, .values = {{"a", 0.5}}});
  EXPECT_EQ(text(), "step,epoch,a\n1,0,1\n2,0,0.5\n");
}

TEST_F(CsvLog, BeginsAnewAfterATornHeader) {
  put("step,epo");
  open()->log_metrics({.step = 2, .values = {{"a", 0.5}}});
  EXPECT_EQ(text(), "step,epoch,a\n2,0,0.5\n");
}

TEST_F(CsvLog, LeavesAForeignFileAlone) {
  put("time,value\n1,2\n");
  EXPECT_THROW(static_cast<void>(open()), Error);
  EXPECT_EQ(text(), "time,value\n1,2\n");
}

TEST_F(CsvLog, WritesNothingThroughALink) {
  const auto victim = dir_ / "victim.csv";
  for (const std::string content : {"", "step,epoch,a\n1,0,1\n2,0,torn", "some text"}) {
    write_file_atomically(victim, content);
    std::filesystem::create_symlink("victim.csv", file());
    const Error error = test::error_of([&] { open()->log_metrics({.values = {{"a", 1}}}); });
    EXPECT_EQ(error.kind(), ErrorKind::output);
    EXPECT_EQ(error.what(), "cannot write to " + file().string() +
                                ": it is a link, which Muster does not write through; remove it, "
                                "or give another run folder");
    EXPECT_EQ(read_file(victim), content);
    std::filesystem::remove(file());
  }
  std::filesystem::remove(victim);
  std::filesystem::create_symlink("victim.csv", file());
  EXPECT_EQ(test::error_of([&] { static_cast<void>(open()); }).kind(), ErrorKind::output);
  EXPECT_FALSE(std::filesystem::exists(victim));
}

TEST_F(CsvLog, DoesNotWaitForWhoeverReadsAPipe) {
  ASSERT_EQ(mkfifo(file().c_str(), 0666), 0);
  const Error error = test::error_of([&] { static_cast<void>(open()); });
  EXPECT_EQ(error.kind(), ErrorKind::output);
  EXPECT_TRUE(test::contains(error.what(), "no regular file"));
}

TEST_F(CsvLog, WritesWhatIsNotFiniteSoThatPythonReadsIt) {
  const double infinity = std::numeric_limits<double>::infinity();
  open()->log_metrics({.values = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}}});
  EXPECT_EQ(text(), "step,epoch,a,b,c\n0,0,NaN,Infinity,-Infinity\n");
}

TEST_F(CsvLog, QuotesNamesAndReadsThemBack) {
  const MetricsRow row{.step = 1, .values = {{"a,\"b\"", 1}, {"=1+1", 2}, {"two\nlines", 3}}};
  open()->log_metrics(row);
  open()->log_metrics(row);
  EXPECT_EQ(text(),
            "step,epoch,\"a,\"\"b\"\"\",=1+1,\"two\nlines\"\n"
            "1,0,1,2,3\n1,0,1,2,3\n");
  open()->log_metrics({.step = 2, .values = {{"more", 4}}});
  EXPECT_EQ(text(),
            "step,epoch,\"a,\"\"b\"\"\",=1+1,\"two\nlines\",more\n"
            "1,0,1,2,3,\n1,0,1,2,3,\n2,0,,,,4\n");
}

TEST_F(CsvLog, LetsALoggedEpochStandInItsColumn) {
  open()->log_metrics({.step = 1, .epoch = 0, .values = {{"epoch", 0.5}, {"a", 1}}});
  EXPECT_EQ(text(), "step,epoch,a\n1,0.5,1\n");
}

}  // namespace
}  // namespace muster
