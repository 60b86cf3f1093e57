#include <muster/matting/errors.h>

#include "src/matting/connectivity_internal.h"
#include "support/paths.h"
#include "tests/matting/reference.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>

namespace muster {
namespace {

using nlohmann::json;
using test::Grid;

constexpr auto profiles = enum_names(MattingProfile{});

json vectors() {
  std::ifstream file{test::tests_dir() / "matting" / "vectors.json"};
  return json::parse(file).at("vectors");
}

Grid<uint8_t> grid(const json& rows) {
  Grid<uint8_t> result;
  result.height = static_cast<int>(rows.size());
  for (const auto& row : rows) {
    result.width = static_cast<int>(row.size());
    for (const auto& value : row) {
      result.values.push_back(value.get<uint8_t>());
    }
  }
  return result;
}

void expect_close(double actual, const json& expected, double relative) {
  const double value = expected.get<double>();
  EXPECT_NEAR(actual, value, relative * std::abs(value));
}

void expect_region(const RegionErrors& actual, const json& expected) {
  EXPECT_EQ(actual.n, expected.at("n").get<int64_t>());
  ASSERT_TRUE(actual.sums.has_value());
  EXPECT_EQ(actual.sums->sad, expected.at("sad_int").get<int64_t>());
  EXPECT_EQ(actual.sums->sse, expected.at("sse_int").get<int64_t>());
  EXPECT_EQ(actual.sums->conn, expected.at("conn_int").get<int64_t>());
  ASSERT_EQ(actual.values.has_value(), !expected.at("sad").is_null());
  if (actual.values) {
    expect_close(actual.values->sad, expected.at("sad"), 1e-12);
    expect_close(actual.values->mse, expected.at("mse"), 1e-12);
    expect_close(actual.values->grad, expected.at("grad"), 1e-9);
    expect_close(actual.values->conn, expected.at("conn"), 1e-12);
  }
}

TEST(MattingVectors, GiveTheirIntegersAndDoublesInEveryProfile) {
  MattingWorkspace workspace;
  int checked = 0;
  const auto all = vectors();
  for (const auto& [name, vector] : all.items()) {
    const auto prediction = grid(vector.at("pred"));
    const auto truth = grid(vector.at("gt"));
    const auto trimap = grid(vector.at("trimap"));
    for (const auto& [profile, value] : profiles) {
      SCOPED_TRACE(testing::Message() << name << ' ' << profile);
      const auto errors = matting_errors(prediction.view(), truth.view(), trimap.view(),
                                         {.profile = value}, workspace);
      const auto& expected = vector.at("expect").at(profile);
      ASSERT_TRUE(errors.unknown.has_value());
      expect_region(*errors.unknown, expected.at("unknown"));
      expect_region(errors.all, expected.at("all"));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 32);
}

TEST(MattingVectors, GiveTheirLevelMapInEveryProfile) {
  const auto all = vectors();
  for (const auto& [name, vector] : all.items()) {
    const auto prediction = grid(vector.at("pred"));
    const auto truth = grid(vector.at("gt"));
    const int64_t width = prediction.width;
    for (const auto& [profile, value] : profiles) {
      SCOPED_TRACE(testing::Message() << name << ' ' << profile);
      Connectivity connectivity;
      connectivity.begin(width, prediction.height, value, best_kernels());
      for (int64_t y = 0; y < prediction.height; ++y) {
        uint8_t* levels = connectivity.row_to_fill();
        for (int64_t i = y * width; i < (y + 1) * width; ++i) {
          *levels++ =
              static_cast<uint8_t>(std::min(prediction.values[i], truth.values[i]) * 10 / 255);
        }
        connectivity.add_row();
      }
      connectivity.solve();
      std::vector<uint8_t> tenths(prediction.values.size());
      for (int64_t y = 0; y < prediction.height; ++y) {
        std::copy_n(connectivity.take_row(), width, tenths.begin() + y * width);
      }
      EXPECT_EQ(tenths, grid(vector.at("l_times_10").at(profile)).values);
    }
  }
}

}  // namespace
}  // namespace muster
