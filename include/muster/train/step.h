#pragma once

#include <muster/base/record.h>
#include <muster/comm/gather.h>
#include <muster/comm/group.h>
#include <muster/metrics/ledger.h>
#include <muster/train/stage.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct StepState;

struct LogOptions {
  /// How the values become one.
  ReduceFx reduce_fx = ReduceFx::mean;
  /// In training: the value of the step, of all ranks, in a row every `log_every_n_steps`. By
  /// default in hooks of batches and steps. True elsewhere is an Error of kind `usage`.
  std::optional<bool> on_step{};
  /// The value of the epoch. By default where it is not the step's; with both the names get the
  /// endings _step and _epoch.
  std::optional<bool> on_epoch{};
  /// Samples that a scalar stands for in a mean; by default those of the batch, 1 in a hook without
  /// a batch.
  std::optional<int64_t> batch_size{};
  /// Shows this rank's latest value beside the progress bar.
  bool prog_bar = false;
};

struct ImageOptions {
  /// One text an image, which differ, or none at all: several images of a call are then "1", "2",
  /// ...
  std::vector<std::string> captions{};
  /// Global index of the sample shown. By default the n-th call for a key in a hook with a batch
  /// shows the batch's n-th sample; a hook without a batch must say it.
  std::optional<int64_t> index{};
};

struct TableOptions {
  /// Global index of each row's sample. By default the batch's samples in order; a hook without a
  /// batch must say them (none where it has no rows).
  std::vector<int64_t> indices{};
};

/// What a hook may do, on any rank, in any hook: log, gather, write predictions. Belongs to the
/// loop and is valid during the call it was given to; one thread.
class Step {
 public:
  explicit Step(StepState& state) : state_{&state} {}

  [[nodiscard]] Stage stage() const;
  /// Counts from 0.
  [[nodiscard]] int64_t epoch() const;
  /// Optimizer steps taken so far.
  [[nodiscard]] int64_t global_step() const;
  /// Global number of the batch in its loader, the same at every number of ranks; -1 in a hook
  /// without a batch.
  [[nodiscard]] int64_t batch_idx() const;
  /// Which of several loaders; 0 where there is one.
  [[nodiscard]] int64_t dataloader_idx() const;
  /// Where the module computes.
  [[nodiscard]] at::Device device() const;
  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
  /// True on the rank that writes. Nothing needs it to log: `log` and `log_image` work on every
  /// rank.
  [[nodiscard]] bool is_global_zero() const { return rank() == 0; }
  [[nodiscard]] const std::string& run_dir() const;

  /// Adds to the value called `name`, of the epoch or, in the training of a batch, of the step. It
  /// becomes the value of all samples at the end of that, exact and the same at any number of
  /// ranks; ranks that log nothing add nothing. In a hook
  /// without a batch each rank that calls adds a value: a sum then grows with their number, unless
  /// `is_global_zero()` guards it. Names are UTF-8 without control characters, and none of the
  /// loggers' own (step, epoch, trainer/global_step, ...): else an Error of kind `usage`.
  void log(std::string_view name, double value, const LogOptions& options = {});
  /// A 0-d tensor is a scalar. Each element of a 1-D tensor counts as one sample. Any device and
  /// number type; other shapes are an Error of kind `usage`.
  void log(std::string_view name, const at::Tensor& value, const LogOptions& options = {});

  /// Adds images to the run: HxW, CxHxW or HxWxC (C of 1, 3, 4), uint8 or floating in [0, 1]
  /// (values outside are clamped), any device, sizes may differ. The tensors may be changed after
  /// the call. Encoding happens on other threads. Error of kind `usage`: captions of another number
  /// than images, no index in a hook without a batch, a call beyond the batch. In a hook without a
  /// batch, what several ranks log alike is one image. With several loaders a batch's key gets the
  /// suffix /dataloader_idx_N.
  void log_image(std::string_view key, const std::vector<at::Tensor>& images,
                 const ImageOptions& options = {});
  /// Adds rows to the per-sample table `name` ([A-Za-z0-9._-]; text columns before numbers). The
  /// mean of each number column becomes the metric `name/column`. With several loaders a batch's
  /// table gets the suffix -dataloader_idx_N.
  void log_table(std::string_view name, const std::vector<std::string>& columns,
                 const std::vector<std::vector<Cell>>& rows, const TableOptions& options = {});
  void log_text(std::string_view key, std::string_view text);

  /// What each present rank gave, in rank order: numbers, texts, tensors of any shape, plain
  /// structs and nests of them. Ranks that have run out of batches are not present. Every rank that
  /// has a batch in this round must call it, else all ranks get an Error of kind `mismatch`.
  template <typename T>
  std::vector<T> all_gather(const T& value,
                            std::source_location where = std::source_location::current()) {
    return gather(group(), value, where);
  }
  /// What rank `root` gave: an Error of kind `mismatch` on all ranks where it is not present.
  template <typename T>
  T broadcast(const T& value, int root = 0,
              std::source_location where = std::source_location::current()) {
    return muster::broadcast(group(), value, root, where);
  }
  /// The sum (or the least, or the greatest) of what the present ranks gave, added in rank order.
  double all_reduce(double value, ReduceOp op = ReduceOp::sum,
                    std::source_location where = std::source_location::current()) {
    return group().all_reduce(std::span{&value, 1}, op, where)[0];
  }
  /// The group, for other collectives.
  Group& group();

  /// Encodes `image` (as log_image takes it) into predictions/INDEX-NAME.png of the run folder;
  /// `index` is the sample's global index. With several loaders the name of a batch's begins with
  /// dataloader_idx_N-.
  void save_prediction(int64_t index, std::string_view name, const at::Tensor& image);

 private:
  StepState* state_;
};

}  // namespace muster
