#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/io/prediction_file.h>

namespace muster {
namespace {

TEST(PredictionFile, BeginsWithTheGlobalIndex) {
  EXPECT_EQ(prediction_file_name(12, "name"), "000012-name.png");
  EXPECT_EQ(prediction_file_name(1234567, "a.b_c-d", ".txt"), "1234567-a.b_c-d.txt");
  EXPECT_THROW(prediction_file_name(-1, "name"), Error);
}

TEST(PredictionFile, EscapesWhatNoFileNameShouldHold) {
  EXPECT_EQ(prediction_file_name(0, "a/../b c"), "000000-a%2F..%2Fb%20c.png");
  EXPECT_EQ(prediction_file_name(0, ".x"), "000000-%2Ex.png");
}

TEST(PredictionFile, KeepsLongNamesApartWithinTheLimit) {
  const std::string base(300, 'x');
  const auto one = prediction_file_name(0, base + "1");
  EXPECT_EQ(one.size(), prediction_file_name(0, base + "2").size());
  EXPECT_NE(one, prediction_file_name(0, base + "2"));
  EXPECT_LE(one.size(), 200U);
  EXPECT_TRUE(one.ends_with(".png"));
}

}  // namespace
}  // namespace muster
