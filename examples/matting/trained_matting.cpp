#include "trained_matting.h"

#include <torch/optim/adamw.h>

namespace matting {

TrainedMatting::TrainedMatting(const TrainingOptions& options)
    : options_{options}, net_{register_module("net", std::make_shared<UNet>())} {}

at::Tensor TrainedMatting::training_step(const Batch& batch, muster::Step& step) {
  const at::Tensor trimap = batch.stack(&Photo::trimap);
  const UNetOutput output = net_->forward(batch.stack(&Photo::image), trimap);
  at::Tensor loss = matting_loss(output, batch.stack(&Photo::alpha), trimap);
  step.log("train/loss", loss, {.prog_bar = true});
  return loss;
}

muster::Optimizers TrainedMatting::configure_optimizers() {
  auto adamw = std::make_shared<torch::optim::AdamW>(
      parameters(), torch::optim::AdamWOptions{options_.lr}.weight_decay(options_.weight_decay));
  return {.optimizer = adamw,
          .schedulers = {{.scheduler = muster::one_cycle_lr(
                              *adamw, {.max_lr = {options_.lr}, .total_steps = options_.steps}),
                          .interval = muster::SchedulerConfig::Interval::step}}};
}

Matte TrainedMatting::matte(const Photo& photo) {
  const auto [alpha, guidance] = net_->forward(photo.image.unsqueeze(0), photo.trimap.unsqueeze(0));
  return {alpha.squeeze(0), guidance.squeeze(0)};
}

}  // namespace matting
