#pragma once

#include <muster/train/module.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

namespace muster {

class BatchNormTie;

/// As torch::nn::BatchNormOptions.
struct SyncBatchNormOptions {
  /// Channels: the input's second dimension.
  int64_t num_features = 1;
  /// Added to the variance before its root is taken.
  double eps = 1e-5;
  /// Weight of a new batch in the running averages, 0..1; none: they are of all batches alike.
  std::optional<double> momentum = 0.1;
  /// Whether each channel has a weight and a bias that are trained.
  bool affine = true;
  /// Whether there are running averages, which evaluation uses; otherwise it uses its batch's.
  bool track_running_stats = true;
};

/// Stands for torch::nn::BatchNorm1d, 2d and 3d: [N, C], [N, C, L], [N, C, H, W] or
/// [N, C, D, H, W], and the same names of parameters and buffers. In `training_step` of
/// Trainer::fit on several ranks a batch is normalized by the statistics of the batches that all
/// ranks have in that round, forward and backward, as one process would with all of them in one
/// batch: float64 to 1e-12, whatever the sizes of the batches, also where some ranks have none.
/// Running averages take the unbiased variance of all these values and are the same on all ranks;
/// in a round that some ranks pass by they move at the end of the step's forwards. Everywhere else
/// (evaluation, other hooks, one rank, no Trainer) it is torch's BatchNorm, to the bit.
///
/// A forward and a backward are a collective each. Ranks that have a batch must run the same layers
/// in the same order; others are an Error of kind `mismatch` on all ranks. On several ranks it is
/// for the CPU so far: Error of kind `usage` for other tensors, for a backward in another thread
/// than the training's, and for second derivatives.
class SyncBatchNormImpl : public torch::nn::Module {
 public:
  explicit SyncBatchNormImpl(int64_t num_features);
  explicit SyncBatchNormImpl(const SyncBatchNormOptions& options);
  /// From torch::nn::BatchNormOptions.
  template <typename TorchOptions>
  requires requires(const TorchOptions& o) { o.track_running_stats(); }
  explicit SyncBatchNormImpl(const TorchOptions& o)
      : SyncBatchNormImpl{SyncBatchNormOptions{.num_features = o.num_features(),
                                               .eps = o.eps(),
                                               .momentum = o.momentum(),
                                               .affine = o.affine(),
                                               .track_running_stats = o.track_running_stats()}} {}

  at::Tensor forward(const at::Tensor& input);

  void reset_running_stats();
  /// Running averages too.
  void reset_parameters();

  [[nodiscard]] std::shared_ptr<torch::nn::Module> clone(
      const std::optional<at::Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;

  SyncBatchNormOptions options;
  at::Tensor weight{};               ///< [C]; undefined without `affine`
  at::Tensor bias{};                 ///< [C]; undefined without `affine`
  at::Tensor running_mean{};         ///< [C]; undefined without `track_running_stats`
  at::Tensor running_var{};          ///< [C], unbiased; undefined without `track_running_stats`
  at::Tensor num_batches_tracked{};  ///< int64; undefined without `track_running_stats`

 private:
  friend class SyncedBatchNorms;

  at::Tensor forward_alone(const at::Tensor& input);
  at::Tensor forward_together(const at::Tensor& input);
  /// The weight of one more batch in the running averages.
  double count_batch();
  /// Moves the running averages by a batch's mean and unbiased variance, float64.
  void track(const at::Tensor& mean, const at::Tensor& variance);

  std::string name_{};                   ///< within the module that is trained
  std::shared_ptr<BatchNormTie> tie_{};  ///< to the other ranks; only in a training_step
};

TORCH_MODULE(SyncBatchNorm);

}  // namespace muster
