#pragma once

#include "matting.h"
#include "unet.h"

#include <cstdint>
#include <memory>

namespace matting {

struct TrainingOptions {
  double lr = 3e-3;            ///< the highest of the schedule
  double weight_decay = 1e-2;  ///< of AdamW
  /// Optimizer steps of the whole training, for the schedule.
  int64_t steps = 1;
};

/// Matting by a U-Net that is trained on crops.
class TrainedMatting : public Matting {
 public:
  explicit TrainedMatting(const TrainingOptions& options);

  at::Tensor training_step(const Batch& batch, muster::Step& step) override;
  muster::Optimizers configure_optimizers() override;

 protected:
  [[nodiscard]] Matte matte(const Photo& photo) override;

 private:
  TrainingOptions options_;
  std::shared_ptr<UNet> net_;
};

}  // namespace matting
