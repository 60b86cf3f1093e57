#include <muster/base/error.h>
#include <muster/train/options.h>

#include <gtest/gtest.h>

#include <limits>

namespace muster::test {
namespace {

TEST(BatchLimit, IsAWholeNumberOfBatchesOrAFraction) {
  EXPECT_EQ(BatchLimit{}.of(7, "limit"), 7);
  EXPECT_EQ(BatchLimit{1}.of(7, "limit"), 1);
  EXPECT_EQ(BatchLimit{1.0}.of(7, "limit"), 7);
  EXPECT_EQ(BatchLimit{0.5}.of(7, "limit"), 3);
  EXPECT_EQ(BatchLimit{0.0}.of(7, "limit"), 0);
  EXPECT_EQ(BatchLimit{100}.of(7, "limit"), 7);
  EXPECT_EQ(BatchLimit{0.5}.of(0, "limit"), 0);
}

TEST(BatchLimit, OutOfRangeOrLessThanABatchIsAnErrorThatNamesIt) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const BatchLimit limit :
       {BatchLimit{-1}, BatchLimit{1.5}, BatchLimit{-0.5}, BatchLimit{nan}, BatchLimit{0.1}}) {
    try {
      static_cast<void>(limit.of(7, "limit_val_batches"));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string{error.what()}.find("limit_val_batches"), std::string::npos);
    }
  }
}

TEST(TrainerOptions, SurviveTheWayThroughATree) {
  const TrainerOptions options{.devices = 3,
                               .threads = {0},
                               .limit_val_batches = 1,
                               .limit_test_batches = 1.0,
                               .limit_predict_batches = 0.25};
  const auto read = from_value<TrainerOptions>(to_value(options));
  EXPECT_EQ(read.threads.count, 0);
  EXPECT_EQ(read.limit_val_batches.of(9, ""), 1);
  EXPECT_EQ(read.limit_test_batches.of(9, ""), 9);
  EXPECT_EQ(read.limit_predict_batches.of(9, ""), 2);
}

TEST(TrainerOptions, OutOfRangeAreAnError) {
  const double infinity = std::numeric_limits<double>::infinity();
  check_options({});
  for (const TrainerOptions& options :
       {TrainerOptions{.devices = 0}, TrainerOptions{.threads = {-1}},
        TrainerOptions{.timeout = 0.0}, TrainerOptions{.timeout = infinity}}) {
    EXPECT_THROW(check_options(options), Error);
  }
}

}  // namespace
}  // namespace muster::test
