#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/io/weights.h>

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

namespace muster {
namespace {

class Weights : public testing::Test {
 protected:
  /// Parameters and a buffer of a small model, all zero.
  static NamedTensors model() {
    return {{"fc.weight", at::zeros({2, 3}).requires_grad_()},
            {"fc.bias", at::zeros({2}).requires_grad_()},
            {"bn.num_batches_tracked", at::zeros({}, at::kLong)}};
  }

  static NamedTensors trained() {
    return {{"fc.weight", at::rand({2, 3})},
            {"fc.bias", at::rand({2})},
            {"bn.num_batches_tracked", at::full({}, 7, at::kLong)}};
  }

  void expect_refused(const NamedTensors& saved, const std::string& part) {
    save_safetensors(file_, saved);
    auto targets = model();
    const auto error = test::error_of([&] { load_weights(file_, targets); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(test::contains(error.what(), part)) << error.what();
    EXPECT_TRUE(test::contains(error.what(), file_.native())) << error.what();
    EXPECT_TRUE(at::equal(targets[0].second, at::zeros({2, 3}))) << "nothing may be copied";
  }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "model.safetensors";
};

TEST_F(Weights, CopiesValuesIntoTheTensorsThatAreThere) {
  const auto saved = trained();
  save_safetensors(file_, saved);
  for (const auto& path : {file_, folder_.path()}) {
    auto targets = model();
    const auto* before = targets[0].second.const_data_ptr();
    EXPECT_TRUE(load_weights(path, targets).empty());
    EXPECT_EQ(targets[0].second.const_data_ptr(), before);
    EXPECT_TRUE(targets[0].second.requires_grad());
    EXPECT_TRUE(targets[0].second.is_leaf());
    for (size_t i = 0; i < saved.size(); ++i) {
      EXPECT_TRUE(at::equal(targets[i].second, saved[i].second)) << saved[i].first;
    }
  }
}

TEST_F(Weights, ConvertsBetweenFloatingTypesAndSaysSo) {
  auto saved = trained();
  saved[1].second = saved[1].second.to(at::kDouble);
  save_safetensors(file_, saved);
  auto targets = model();
  EXPECT_EQ(load_weights(file_, targets), std::vector<std::string>{"fc.bias"});
  EXPECT_EQ(targets[1].second.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(targets[1].second, saved[1].second.to(at::kFloat)));
}

TEST_F(Weights, FillsTensorsOfAnyStrides) {
  save_safetensors(file_, {{"w", at::arange(6).view({2, 3})}});
  const NamedTensors targets{{"w", at::zeros({3, 2}, at::kLong).t()}};
  load_weights(file_, targets);
  EXPECT_TRUE(at::equal(targets[0].second, at::arange(6).view({2, 3})));
}

TEST_F(Weights, NamesWhatIsMissingAndWhatIsUnknown) {
  auto saved = trained();
  saved[0].first = "fc.wieght";
  expect_refused(saved, "1 missing in the file: fc.weight (there is fc.wieght)");
  expect_refused(saved, "1 unknown to the model: fc.wieght (there is fc.weight)");
  saved = trained();
  for (int i = 0; i < 9; ++i) {
    saved.emplace_back("head." + std::to_string(i), at::zeros({1}));
  }
  expect_refused(saved,
                 "9 unknown to the model: head.0, head.1, head.2, head.3, head.4 and 4 more");
}

TEST_F(Weights, NamesATensorOfAnotherShapeOrType) {
  auto saved = trained();
  saved[1].second = at::zeros({3});
  expect_refused(saved, "'fc.bias' has shape [3], and the model's has [2]");
  saved = trained();
  saved[2].second = at::zeros({}, at::kFloat);
  expect_refused(saved, "'bn.num_batches_tracked' is of type Float, and the model's of Long");
}

TEST_F(Weights, NamesAPathThatIsNotThere) {
  const auto error = test::error_of([&] { load_weights(folder_ / "none.ckpt", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_TRUE(test::contains(error.what(), "none.ckpt"));
  const auto empty = test::error_of([&] { load_weights(folder_.path(), {}); });
  EXPECT_EQ(empty.kind(), ErrorKind::usage);
  EXPECT_TRUE(test::contains(empty.what(), "holds no model.safetensors"));
}

}  // namespace
}  // namespace muster
