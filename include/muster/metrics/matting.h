#pragma once

#include <ATen/core/Tensor.h>
#include <muster/matting/errors.h>
#include <muster/metrics/table_metric.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

class ThreadPool;

/// What the numbers of an alpha matte mean.
enum class AlphaRange {
  unit,  ///< [0, 1]
  byte,  ///< [0, 255]
};

constexpr auto enum_names(AlphaRange) {
  return std::array{std::pair{"unit", AlphaRange::unit}, std::pair{"byte", AlphaRange::byte}};
}

/// What the numbers of a trimap mean: background, unknown, foreground.
enum class TrimapCoding {
  classes,  ///< 0, 1, 2
  byte,     ///< 0, 128, 255
};

constexpr auto enum_names(TrimapCoding) {
  return std::array{std::pair{"classes", TrimapCoding::classes},
                    std::pair{"byte", TrimapCoding::byte}};
}

struct MattingMetricOptions {
  MattingProfile profile = MattingProfile::dim;     ///< which convention
  AlphaRange alpha_range = AlphaRange::unit;        ///< of the predicted alpha
  AlphaRange truth_range = AlphaRange::unit;        ///< of the true alpha
  TrimapCoding trimap_coding = TrimapCoding::byte;  ///< of the trimap
  std::shared_ptr<ThreadPool> pool{};               ///< computes; empty: one made on first use
  int64_t most_bytes_waiting = int64_t{1} << 29U;   ///< beyond that `update` waits for the pool
};

/// Names of a sample, for its row and for errors.
struct SampleName {
  std::string dataset_name{};
  std::string image_name{};
};

/// SAD, MSE, gradient and connectivity error of alpha mattes, for the unknown region and the whole
/// picture of each sample (`matting_errors`), and their means over the samples that have a value.
/// Pictures may be of any size.
///
/// Values: unknown/sad, unknown/mse, unknown/grad, unknown/conn, all/sad, ..., all/conn. Table "":
/// dataset_name, image_name, unknown/n, unknown/sad, ..., all/n, all/sad, ..., all/conn; n counts
/// the region's pixels. The cells of a region without pixels are empty (n is 0), and so are those
/// of the unknown region, n too, without a trimap.
class MattingMetric : public Metric {
 public:
  explicit MattingMetric(MattingMetricOptions options = {});
  ~MattingMetric() override;

  /// Adds the sample with global index `index`. The tensors are copied before it returns; the
  /// errors are computed on the pool while the caller goes on.
  ///
  /// `alpha` and `truth`: [H, W], [1, H, W] or [1, 1, H, W], uint8 or floating, any device, in the
  /// declared ranges; two uint8 tensors of range byte are compared in integers. `trimap`: the same
  /// shapes, of integers or floating, with the declared values alone; undefined where there is
  /// none.
  ///
  /// Error of kind `usage` for another shape or dtype. Values outside the declared ranges, and
  /// sizes that differ, are errors of kind `data` that name the sample; they come out of a later
  /// `update`, or of `state`.
  void update(int64_t index, const at::Tensor& alpha, const at::Tensor& truth,
              const at::Tensor& trimap, SampleName name = {});

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 private:
  struct Work;

  void finish_all();

  TableMetric rows_;
  std::unique_ptr<Work> work_;
};

}  // namespace muster
