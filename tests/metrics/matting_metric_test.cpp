#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <muster/base/error.h>
#include <muster/base/random.h>
#include <muster/base/thread_pool.h>
#include <muster/metrics/matting.h>

#include "tests/metrics/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using test::fingerprint;

struct Photo {
  int64_t index = 0;
  at::Tensor alpha;
  at::Tensor truth;
  at::Tensor trimap;
  SampleName name{};
};

template <typename T>
at::Tensor tensor(at::IntArrayRef sizes, at::ScalarType dtype, const std::vector<T>& values) {
  auto result = at::empty(sizes, at::TensorOptions().dtype(dtype));
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<T>());
  return result;
}

at::Tensor bytes(at::IntArrayRef sizes, const std::vector<uint8_t>& values) {
  return tensor(sizes, at::kByte, values);
}

at::Tensor floats(at::IntArrayRef sizes, const std::vector<float>& values) {
  return tensor(sizes, at::kFloat, values);
}

at::Tensor random_bytes(Rng& rng, int64_t height, int64_t width,
                        const std::vector<uint8_t>& from = {}) {
  auto result = at::empty({height, width}, at::TensorOptions().dtype(at::kByte));
  auto* data = result.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < height * width; ++i) {
    data[i] = from.empty()
                  ? static_cast<uint8_t>(rng.below(256))
                  : from[static_cast<size_t>(rng.below(static_cast<int64_t>(from.size())))];
  }
  return result;
}

/// Pictures of sizes of their own; sample 3 has no unknown pixel, sample 5 no trimap.
std::vector<Photo> ragged_photos() {
  std::vector<Photo> photos;
  for (int64_t index = 0; index < 7; ++index) {
    Rng rng{11, static_cast<uint64_t>(index)};
    const int64_t height = 3 + rng.below(30);
    const int64_t width = 3 + rng.below(30);
    const auto values =
        index == 3 ? std::vector<uint8_t>{0, 255} : std::vector<uint8_t>{0, 128, 255};
    photos.push_back(
        {.index = index,
         .alpha = random_bytes(rng, height, width),
         .truth = random_bytes(rng, height, width),
         .trimap = index == 5 ? at::Tensor{} : random_bytes(rng, height, width, values),
         .name = {"data", "image " + std::to_string(index)}});
  }
  return photos;
}

constexpr auto byte = AlphaRange::byte;

MattingMetricOptions byte_options() { return {.alpha_range = byte, .truth_range = byte}; }

void update(MattingMetric& metric, const Photo& photo) {
  metric.update(photo.index, photo.alpha, photo.truth, photo.trimap, photo.name);
}

const std::vector<Cell>& cells(const MetricResult& result, size_t row) {
  return result.tables.at(0).rows.at(row).cells;
}

std::optional<double> value(const MetricResult& result, const std::string& name) {
  for (const auto& [key, number] : result.values) {
    if (key == name) {
      return number;
    }
  }
  ADD_FAILURE() << "no value " << name;
  return {};
}

/// Kind and text of the error that `call` throws.
template <typename Call>
std::pair<ErrorKind, std::string> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(MattingMetric, HasTheColumnsAndValuesOfTheContract) {
  MattingMetric metric{byte_options()};
  update(metric, ragged_photos()[0]);
  const auto result = metric.compute();
  std::vector<std::string> names;
  names.reserve(result.values.size());
  for (const auto& [name, number] : result.values) {
    names.push_back(name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"unknown/sad", "unknown/mse", "unknown/grad", "unknown/conn",
                                      "all/sad", "all/mse", "all/grad", "all/conn"}));
  EXPECT_EQ(result.tables.at(0).columns,
            (std::vector<std::string>{"dataset_name", "image_name", "unknown/n", "unknown/sad",
                                      "unknown/mse", "unknown/grad", "unknown/conn", "all/n",
                                      "all/sad", "all/mse", "all/grad", "all/conn"}));
}

TEST(MattingMetric, GivesTheErrorsOfTheKernel) {
  const auto photo = ragged_photos()[0];
  MattingMetric metric{byte_options()};
  update(metric, photo);
  const auto result = metric.compute();
  const auto view = [](const at::Tensor& t) {
    return Picture8{t.const_data_ptr<uint8_t>(), t.size(1), t.size(0), t.size(1)};
  };
  MattingWorkspace workspace;
  const auto errors =
      matting_errors(view(photo.alpha), view(photo.truth), view(photo.trimap), {}, workspace);
  EXPECT_EQ(
      cells(result, 0),
      (std::vector<Cell>{
          "data", "image 0", static_cast<double>(errors.unknown->n), errors.unknown->values->sad,
          errors.unknown->values->mse, errors.unknown->values->grad, errors.unknown->values->conn,
          static_cast<double>(errors.all.n), errors.all.values->sad, errors.all.values->mse,
          errors.all.values->grad, errors.all.values->conn}));
}

TEST(MattingMetric, GivesTheSameBytesForEveryWorldSizeAndOrder) {
  const auto photos = ragged_photos();
  std::set<std::string> results;
  Rng rng{5};
  for (const size_t world : {1U, 2U, 3U, 9U}) {
    std::deque<MattingMetric> ranks;
    for (size_t rank = 0; rank < world; ++rank) {
      auto options = byte_options();
      options.pool = std::make_shared<ThreadPool>(static_cast<int>(1 + rank % 3));
      ranks.emplace_back(options);
    }
    std::vector<int64_t> order{0, 1, 2, 3, 4, 5, 6};
    rng.shuffle(order);
    for (const int64_t i : order) {
      update(ranks[static_cast<size_t>(i) % world], photos[static_cast<size_t>(i)]);
    }
    test::sync(ranks);
    for (auto& rank : ranks) {
      results.insert(fingerprint(rank.compute()));
    }
  }
  EXPECT_EQ(results.size(), 1U);
}

TEST(MattingMetric, LeavesARegionWithoutPixelsOutOfTheMean) {
  const auto photos = ragged_photos();
  MattingMetric metric{byte_options()};
  for (const auto& photo : photos) {
    update(metric, photo);
  }
  const auto result = metric.compute();
  const auto& no_unknown = cells(result, 3);
  EXPECT_EQ(no_unknown.at(2), Cell{0.0});
  EXPECT_EQ(no_unknown.at(3), Cell{});
  EXPECT_EQ(no_unknown.at(6), Cell{});
  EXPECT_NE(no_unknown.at(8), Cell{});
  const auto& no_trimap = cells(result, 5);
  EXPECT_EQ(no_trimap.at(2), Cell{});
  EXPECT_EQ(no_trimap.at(3), Cell{});
  EXPECT_NE(no_trimap.at(8), Cell{});

  MattingMetric others{byte_options()};
  for (const size_t i : {0, 1, 2, 4, 6}) {
    update(others, photos[i]);
  }
  const auto mean_of_others = others.compute();
  for (const std::string name : {"unknown/sad", "unknown/mse", "unknown/grad", "unknown/conn"}) {
    EXPECT_EQ(value(result, name), value(mean_of_others, name));
  }
  EXPECT_NE(value(result, "all/sad"), value(mean_of_others, "all/sad"));
}

TEST(MattingMetric, TakesTheSameAlphaInEveryFormThatItDeclares) {
  // 255 * 0.2 = 51 and so on: exact in every form.
  const std::vector<uint8_t> levels{0, 51, 102, 153, 204, 255};
  Rng rng{6};
  const auto alpha = random_bytes(rng, 6, 7, levels);
  const auto truth = random_bytes(rng, 6, 7, levels);
  const auto trimap = random_bytes(rng, 6, 7, {0, 128, 255});
  MattingMetric integers{byte_options()};
  integers.update(0, alpha, truth, trimap);
  const auto expected = integers.compute();

  const auto as_float = alpha.to(at::kFloat).view({1, 1, 6, 7});
  const auto as_double = alpha.to(at::kDouble).view({1, 6, 7});
  const auto classes = trimap.to(at::kInt).div(127, "floor");
  const std::vector<std::pair<at::Tensor, AlphaRange>> forms{
      {alpha, byte},
      {as_float, byte},
      {as_double, byte},
      {as_double.div(255.0), AlphaRange::unit},
      {as_float.div(255.0), AlphaRange::unit}};
  for (const auto& [form, range] : forms) {
    MattingMetric metric{
        {.alpha_range = range, .truth_range = byte, .trimap_coding = TrimapCoding::classes}};
    metric.update(0, form, truth, classes);
    const auto result = metric.compute();
    for (const auto& [name, number] : expected.values) {
      EXPECT_NEAR(*value(result, name), *number, 1e-6 * *number) << name << " " << form.dtype();
    }
    EXPECT_EQ(cells(result, 0).at(2), cells(expected, 0).at(2));
  }
}

TEST(MattingMetric, ReadsStridedAndHalfPrecisionTensors) {
  const auto wide = floats({2, 6}, {0, 1, 0.5, 1, 1, 1, 0.25, 1, 0.75, 1, 0, 1});
  const auto strided = wide.slice(1, 0, 6, 2);
  const auto truth = floats({2, 3}, {0, 0.5, 1, 0.25, 0.75, 0});
  MattingMetric metric;
  metric.update(0, strided, truth.to(at::kHalf), {});
  EXPECT_EQ(value(metric.compute(), "all/sad"), 0.0);
}

TEST(MattingMetric, LetsTheCallerReuseItsTensors) {
  MattingMetric metric;
  auto alpha = floats({1, 2}, {0.5F, 0.5F});
  const auto truth = floats({1, 2}, {0.5F, 0.5F});
  metric.update(0, alpha, truth, {});
  alpha.fill_(1.0);
  EXPECT_EQ(value(metric.compute(), "all/sad"), 0.0);
}

TEST(MattingMetric, WaitsForThePoolBeyondItsBytes) {
  auto options = byte_options();
  options.most_bytes_waiting = 1;
  MattingMetric bounded{options};
  MattingMetric free{byte_options()};
  for (const auto& photo : ragged_photos()) {
    update(bounded, photo);
    update(free, photo);
  }
  EXPECT_EQ(fingerprint(bounded.compute()), fingerprint(free.compute()));
}

TEST(MattingMetric, NamesTheSampleWhoseValuesAreOutsideTheirRange) {
  const auto good = floats({1, 2}, {0.0F, 1.0F});
  const auto truth = bytes({1, 2}, {0, 1});
  const std::vector<std::pair<at::Tensor, AlphaRange>> bad{
      {floats({1, 2}, {0.5F, 1.5F}), AlphaRange::unit},
      {floats({1, 2}, {0.5F, std::nanf("")}), AlphaRange::unit},
      {bytes({1, 2}, {0, 255}), AlphaRange::unit},
      {floats({1, 2}, {0.5F, 255.5F}), byte},
      {floats({1, 2}, {0.5F, -1.0F}), byte}};
  for (const auto& [alpha, range] : bad) {
    MattingMetric metric{{.alpha_range = range}};
    metric.update(12, alpha, truth, {}, {"cats", "tom"});
    const auto [kind, text] = error_of([&] { metric.state(); });
    EXPECT_EQ(kind, ErrorKind::data);
    EXPECT_NE(text.find("sample 12 (cats/tom)"), std::string::npos) << text;
    EXPECT_NE(text.find("row 0, column 1"), std::string::npos) << text;
  }
}

TEST(MattingMetric, NamesTheSampleWhoseTrimapHasAnotherCoding) {
  const auto alpha = floats({1, 3}, {0.0F, 0.5F, 1.0F});
  const auto classes = bytes({1, 3}, {0, 1, 2});
  MattingMetric metric{{.trimap_coding = TrimapCoding::byte}};
  metric.update(4, alpha, alpha, classes, {"cats", "tom"});
  const auto [kind, text] = error_of([&] { metric.compute(); });
  EXPECT_EQ(kind, ErrorKind::data);
  EXPECT_NE(text.find("sample 4 (cats/tom)"), std::string::npos) << text;
  EXPECT_NE(text.find("0, 128 and 255"), std::string::npos) << text;
}

TEST(MattingMetric, BringsTheErrorOfASampleToALaterUpdate) {
  const auto good = floats({1, 2}, {0.0F, 1.0F});
  const auto bad = floats({1, 2}, {0.0F, 2.0F});
  MattingMetric metric{{.most_bytes_waiting = 1}};
  metric.update(7, bad, good, {}, {"cats", "tom"});
  const auto [kind, text] = error_of([&] { metric.update(8, good, good, {}); });
  EXPECT_EQ(kind, ErrorKind::data);
  EXPECT_NE(text.find("sample 7 (cats/tom)"), std::string::npos) << text;
}

TEST(MattingMetric, NamesBothSizesWhereTheyDiffer) {
  MattingMetric metric;
  metric.update(1, floats({1, 2}, {0, 0}), floats({2, 1}, {0, 0}), {}, {"a", "b"});
  const auto [kind, text] = error_of([&] { metric.state(); });
  EXPECT_EQ(kind, ErrorKind::data);
  EXPECT_NE(text.find("2x1"), std::string::npos) << text;
  EXPECT_NE(text.find("1x2"), std::string::npos) << text;
}

TEST(MattingMetric, RefusesOtherShapesAndDtypesAtOnce) {
  const auto good = floats({1, 2}, {0, 0});
  const auto whole = good.to(at::kLong);
  MattingMetric metric;
  for (const auto& bad : {good.view({2}), good.expand({3, 1, 2}), whole, at::Tensor{}}) {
    EXPECT_EQ(error_of([&] { metric.update(0, bad, good, {}); }).first, ErrorKind::usage);
    EXPECT_EQ(error_of([&] { metric.update(0, good, bad, {}); }).first, ErrorKind::usage);
  }
  EXPECT_EQ(error_of([&] { metric.update(0, good, good, whole.to(at::kBool)); }).first,
            ErrorKind::usage);
  EXPECT_EQ(metric.state(), "");
}

TEST(MattingMetric, RefusesASampleTwice) {
  const auto good = floats({1, 2}, {0, 0});
  MattingMetric metric;
  metric.update(3, good, good, {});
  metric.update(3, good, good, {});
  const auto [kind, text] = error_of([&] { metric.state(); });
  EXPECT_NE(text.find("sample 3"), std::string::npos) << text;
}

TEST(MattingMetric, ForgetsUnfinishedWorkAtReset) {
  const auto good = floats({1, 2}, {0, 0});
  MattingMetric metric;
  metric.update(3, floats({1, 2}, {0, 9}), good, {});
  metric.reset();
  EXPECT_EQ(metric.state(), "");
  metric.update(3, good, good, {});
  EXPECT_EQ(metric.compute().tables.at(0).rows.size(), 1U);
}

}  // namespace
}  // namespace muster
