// metrics_program CASES TENSORS: what each metric of CASES gives. A line of CASES is a name, a
// metric and its options as KEY=VALUE; the case's updates are the tensors NAME.0.ROLE, NAME.1.ROLE,
// ... of the safetensors file TENSORS. Prints lines "NAME VALUE-NAME NUMBER", or "-" without a
// value, of one rank; fails where three ranks that share the updates give other bits.
// metrics_test.py knows the same names.
#include <muster/base/check.h>
#include <muster/io/safetensors.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/confusion_matrix.h>
#include <muster/metrics/image_quality.h>
#include <muster/metrics/mean_average_precision.h>
#include <muster/metrics/ranking.h>
#include <muster/metrics/regression.h>
#include <muster/metrics/segmentation.h>
#include <muster/value/convert.h>

#include "tests/metrics/ranks.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Tensors = std::map<std::string, at::Tensor>;
using muster::Value;

/// The tensors of one update, by role.
struct Update {
  const Tensors* tensors = nullptr;
  std::string prefix{};

  [[nodiscard]] bool exists() const {
    const auto next = tensors->lower_bound(prefix);
    return next != tensors->end() && next->first.starts_with(prefix);
  }
  [[nodiscard]] at::Tensor operator[](const std::string& role) const {
    const auto found = tensors->find(prefix + role);
    return found == tensors->end() ? at::Tensor{} : found->second;
  }
};

/// A metric of any type and how it takes an update.
struct Subject {
  std::unique_ptr<muster::Metric> metric{};
  std::function<void(int64_t, const Update&)> update{};

  std::string state() { return metric->state(); }
  void reset() { metric->reset(); }
  void merge(const std::string& state) { metric->merge(state); }
  muster::MetricResult compute() { return metric->compute(); }
};

Value parse(const std::string& text) {
  char* end = nullptr;
  const long integer = std::strtol(text.c_str(), &end, 10);
  if (*end == '\0') {
    return int64_t{integer};
  }
  const double number = std::strtod(text.c_str(), &end);
  if (*end == '\0') {
    return number;
  }
  return text == "true" ? Value{true} : text == "false" ? Value{false} : Value{text};
}

template <typename M, typename Options>
Subject pairwise(const Value& options) {
  std::unique_ptr<M> metric;
  if constexpr (std::is_void_v<Options>) {
    metric = std::make_unique<M>();
  } else {
    metric = std::make_unique<M>(muster::from_value<Options>(options));
  }
  auto* raw = metric.get();
  return {std::move(metric), [raw](int64_t /*index*/, const Update& update) {
            raw->update(update["preds"], update["target"]);
          }};
}

Subject spread(const Value& options) {
  auto metric = std::make_unique<muster::StandardDeviation>(
      muster::from_value<muster::StandardDeviationOptions>(options));
  auto* raw = metric.get();
  return {std::move(metric), [raw](int64_t /*index*/, const Update& update) {
            const auto values = update["values"];
            const auto count = static_cast<size_t>(values.numel());
            raw->update(std::span{values.const_data_ptr<double>(), count});
          }};
}

Subject boxes(const Value& options) {
  auto metric = std::make_unique<muster::MeanAveragePrecision>(
      muster::from_value<muster::MeanAveragePrecisionOptions>(options));
  auto* raw = metric.get();
  return {std::move(metric), [raw](int64_t index, const Update& update) {
            raw->update(
                index, {update["boxes"], update["scores"], update["labels"]},
                {update["true_boxes"], update["true_labels"], update["iscrowd"], update["area"]});
          }};
}

using Maker = Subject (*)(const Value& options);

const std::map<std::string, Maker>& makers() {
  using namespace muster;
  static const std::map<std::string, Maker> all{
      {"StandardDeviation", spread},
      {"Accuracy", pairwise<Accuracy, ClassificationOptions>},
      {"Precision", pairwise<PrecisionScore, ClassificationOptions>},
      {"Recall", pairwise<Recall, ClassificationOptions>},
      {"F1Score", pairwise<F1Score, ClassificationOptions>},
      {"ConfusionMatrix", pairwise<ConfusionMatrix, ConfusionMatrixOptions>},
      {"AUROC", pairwise<AUROC, RankingOptions>},
      {"AveragePrecision", pairwise<AveragePrecision, RankingOptions>},
      {"MeanAveragePrecision", boxes},
      {"MeanIoU", pairwise<MeanIoU, SegmentationOptions>},
      {"DiceScore", pairwise<DiceScore, SegmentationOptions>},
      {"MeanSquaredError", pairwise<MeanSquaredError, MeanSquaredErrorOptions>},
      {"MeanAbsoluteError", pairwise<MeanAbsoluteError, void>},
      {"PSNR", pairwise<PeakSignalNoiseRatio, PeakSignalNoiseRatioOptions>},
      {"SSIM", pairwise<StructuralSimilarityIndexMeasure, StructuralSimilarityIndexMeasureOptions>},
  };
  return all;
}

muster::MetricResult run(Maker make, const Value& options, const std::string& name,
                         const Tensors& tensors, size_t world) {
  std::vector<Subject> ranks;
  for (size_t rank = 0; rank < world; ++rank) {
    ranks.push_back(make(options));
  }
  std::vector<Update> updates;
  for (int64_t i = 0;; ++i) {
    Update update{&tensors, muster::format("{}.{}.", name, i)};
    if (!update.exists()) {
      break;
    }
    updates.push_back(update);
  }
  for (size_t i = 0; i < updates.size(); ++i) {  // several ranks see them in another order
    const size_t from = world == 1 ? i : updates.size() - 1 - i;
    ranks[from % world].update(static_cast<int64_t>(from), updates[from]);
  }
  return muster::test::sync(ranks);
}

void run_case(const std::string& line, const Tensors& tensors) {
  std::istringstream words{line};
  std::string name;
  std::string metric;
  words >> name >> metric;
  Value options = Value::Dict{};
  for (std::string word; words >> word;) {
    const auto sign = word.find('=');
    options[word.substr(0, sign)] = parse(word.substr(sign + 1));
  }
  const auto make = makers().at(metric);
  const auto result = run(make, options, name, tensors, 1);
  for (const size_t world : {2, 3}) {
    const auto other = run(make, options, name, tensors, world);
    if (muster::test::fingerprint(other) != muster::test::fingerprint(result)) {
      muster::fail(muster::ErrorKind::user, "{}: {} ranks give another result", line, world);
    }
  }
  for (const auto& [value_name, value] : result.values) {
    const auto text = value ? muster::format("{:.17g}", *value) : "-";
    std::printf("%s %s %s\n", name.c_str(), value_name.empty() ? "." : value_name.c_str(),
                text.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const auto file = muster::load_safetensors(argv[2]);
  const Tensors tensors{file.tensors.begin(), file.tensors.end()};
  std::ifstream cases{argv[1]};
  for (std::string line; std::getline(cases, line);) {
    try {
      run_case(line, tensors);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", line.c_str(), error.what());
      return 1;
    }
  }
  return 0;
}
