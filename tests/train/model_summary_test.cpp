#include "src/train/summary_table_internal.h"
#include "tests/support/texts.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

SummaryPart layer(const std::string& name, int64_t in, int64_t out) {
  return {.name = name,
          .type = "Linear",
          .parameters = {at::zeros({out, in}).requires_grad_(), at::zeros({out}).requires_grad_()}};
}

/// Two layers in an encoder, a head in eval mode, a parameter of the module itself, and one of the
/// head that the module names again.
SummaryPart net() {
  SummaryPart head = layer("head", 10, 2);
  head.training = false;
  SummaryPart encoder{.name = "encoder",
                      .type = "Encoder",
                      .parts = {layer("first", 64, 64), layer("second", 64, 10)}};
  encoder.parts[0].parameters[1].requires_grad_(false);
  const at::Tensor tied = head.parameters[0];
  return {.type = "Net",
          .parameters = {at::zeros({3}).requires_grad_(), tied},
          .parts = {std::move(encoder), std::move(head)}};
}

TEST(ModelSummary, ListsThePartsOfTheModule) {
  EXPECT_EQ(summary_table(net(), 1),
            "  | Name         | Type    | Params | Mode\n"
            "-------------------------------------------\n"
            "0 | encoder      | Encoder |  4.8 K | train\n"
            "1 | head         | Linear  |     22 | eval\n"
            "  | other params |         |      3 |\n"
            "-------------------------------------------\n"
            "4.8 K     Trainable params\n"
            "64        Non-trainable params\n"
            "4.8 K     Total params\n"
            "0.019     Params size (MB)\n"
            "3         Modules in train mode\n"
            "1         Modules in eval mode\n");
}

TEST(ModelSummary, GoesAsDeepAsItIsTold) {
  const std::string all = summary_table(net(), -1);
  EXPECT_EQ(all, summary_table(net(), 2));
  EXPECT_TRUE(test::has(all,
                        "0 | encoder        | Encoder |  4.8 K | train\n"
                        "1 | encoder.first  | Linear  |  4.2 K | train\n"
                        "2 | encoder.second | Linear  |    650 | train\n"
                        "3 | head           | Linear  |     22 | eval\n"));
  EXPECT_TRUE(summary_table(net(), 0).starts_with("4.8 K     Trainable params\n"));
}

TEST(ModelSummary, ShortensNumbers) {
  const auto total = [](int64_t count) {
    const std::string text = summary_table(
        {.parameters = {at::zeros({1}).expand({count}).requires_grad_()}}, /*max_depth=*/0);
    return text.substr(0, text.find("  "));
  };
  EXPECT_EQ(total(0), "0");
  EXPECT_EQ(total(999), "999");
  EXPECT_EQ(total(1234), "1.2 K");
  EXPECT_EQ(total(275000), "275 K");
  EXPECT_EQ(total(2000000), "2.0 M");
  EXPECT_EQ(total(5000000000000000), "5000 T");
}

}  // namespace
}  // namespace muster
