#include <muster/base/check.h>
#include <muster/base/exact_sum.h>
#include <muster/metrics/image_quality.h>
#include <muster/value/tensor.h>

#include "src/metrics/host_values_internal.h"
#include "src/metrics/ssim_internal.h"

#include <cmath>

namespace muster {

namespace {

void check_data_range(double range) {
  check(range > 0.0,
        "data_range is {}: give the difference of the greatest and the smallest value a picture "
        "can have, such as 1 or 255",
        range);
}

}  // namespace

PeakSignalNoiseRatio::PeakSignalNoiseRatio(PeakSignalNoiseRatioOptions options)
    : options_{options} {
  check_data_range(options_.data_range);
  check(options_.base > 1.0, "the base of a logarithm is above 1, not {}", options_.base);
}

void PeakSignalNoiseRatio::update(const at::Tensor& preds, const at::Tensor& target) {
  check_numbers(preds, target);
  check(!options_.per_image || preds.dim() > 0, "pictures are [N, ...], not {}", describe(preds));
  const auto said = host_doubles(preds);
  const auto truth = host_doubles(target);
  const auto squared_error = [&](size_t i) { return (said[i] - truth[i]) * (said[i] - truth[i]); };
  if (!options_.per_image) {
    for (size_t i = 0; i < said.size(); ++i) {
      add(squared_error(i));
    }
    return;
  }
  const size_t size = said.empty() ? 0 : said.size() / static_cast<size_t>(preds.size(0));
  for (size_t first = 0; first < said.size(); first += size) {
    ExactSum sum;
    for (size_t i = first; i < first + size; ++i) {
      sum.add(squared_error(i));
    }
    add(ratio(sum.mean(static_cast<int64_t>(size))));
  }
}

double PeakSignalNoiseRatio::ratio(double mean_squared_error) const {
  return (2.0 * std::log(options_.data_range) - std::log(mean_squared_error)) * 10.0 /
         std::log(options_.base);
}

double PeakSignalNoiseRatio::value_of(double mean) const {
  return options_.per_image ? mean : ratio(mean);
}

StructuralSimilarityIndexMeasure::StructuralSimilarityIndexMeasure(
    StructuralSimilarityIndexMeasureOptions options)
    : options_{options} {
  check_data_range(options_.data_range);
  check(options_.sigma > 0.0, "sigma is above 0, not {}", options_.sigma);
  check(options_.kernel_size > 0 && options_.kernel_size % 2 == 1,
        "a window has an odd side, not {}", options_.kernel_size);
}

void StructuralSimilarityIndexMeasure::update(const at::Tensor& preds, const at::Tensor& target) {
  check_numbers(preds, target);
  const auto window = ssim_window(options_);
  const auto least = static_cast<int64_t>(window.size() / 2) + 1;
  check(preds.dim() == 4 && preds.size(1) > 0 && preds.size(2) >= least && preds.size(3) >= least,
        "pictures are [N, C, H, W] with H and W of {} or more for a window of {}, not {}", least,
        window.size(), describe(preds));
  const auto said = host_doubles(preds);
  const auto truth = host_doubles(target);
  const auto height = static_cast<size_t>(preds.size(2));
  const auto width = static_cast<size_t>(preds.size(3));
  const auto channels = static_cast<size_t>(preds.size(1));
  const size_t plane = height * width;
  for (size_t first = 0; first < said.size(); first += channels * plane) {
    double sum = 0.0;
    for (size_t c = 0; c < channels; ++c) {
      const size_t at = first + c * plane;
      sum +=
          ssim_sum({said.data() + at, plane}, {truth.data() + at, plane}, width, window, options_);
    }
    add(sum / static_cast<double>(channels * plane));
  }
}

}  // namespace muster
