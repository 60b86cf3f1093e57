#pragma once

#include <muster/comm/group.h>
#include <muster/train/sync_batch_norm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// Of a forward that all ranks' running averages have to follow.
struct BatchNormUpdate {
  int64_t round = 0;
  std::string layer{};
  at::Tensor mean{};
  at::Tensor variance{};  ///< unbiased
};

/// What ties a training's SyncBatchNorm modules to the other ranks.
class BatchNormTie {
 public:
  explicit BatchNormTie(Group its_group) : group{std::move(its_group)} {}

  Group group;
  /// Forwards of the last training_step whose backward gathers.
  int64_t forwards = 0;
  /// Whether some ranks do not see all batches of this step, so that running averages wait.
  bool uneven = false;
  /// Of the rounds in which this rank is the lowest one that has a batch.
  std::vector<BatchNormUpdate> waiting{};
};

/// The SyncBatchNorm modules of a module that is trained on several ranks. Costs nothing where
/// there are none.
class SyncedBatchNorms {
 public:
  SyncedBatchNorms() = default;
  /// None on a group of one.
  SyncedBatchNorms(const torch::nn::Module& module, const Group& group);

  /// Ties the modules to the other ranks as long as it lives.
  class Tied {
   public:
    explicit Tied(SyncedBatchNorms& norms);
    Tied(const Tied&) = delete;
    Tied& operator=(const Tied&) = delete;
    ~Tied();

   private:
    SyncedBatchNorms& norms_;
  };

  [[nodiscard]] bool empty() const { return modules_.empty(); }
  /// `uneven`: some ranks have no batch in some round of this step.
  void begin_step(bool uneven);
  /// Between a batch's forward and its backward, in a round in which all ranks have one or in which
  /// backward waits for no rank: makes sure that backward calls the same collectives on all ranks.
  void before_backward(const at::Tensor& loss);
  /// In the last round of an uneven step, on all ranks and unless `empty`, before a backward that
  /// waits for all: `loss` is undefined on a rank without a batch, which takes part in the
  /// collectives of the others' backward. The step's running averages move.
  void before_uneven_backward(const at::Tensor& loss);

 private:
  std::vector<std::shared_ptr<SyncBatchNormImpl>> modules_{};
  std::shared_ptr<BatchNormTie> tie_{};
};

}  // namespace muster
