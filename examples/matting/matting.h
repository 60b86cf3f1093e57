#pragma once

#include "icons.h"

#include <muster/metrics/matting.h>
#include <muster/train/module.h>

#include <ATen/core/Tensor.h>

#include <vector>

namespace matting {

struct Matte {
  at::Tensor alpha;     ///< HxW, float in [0, 1]
  at::Tensor guidance;  ///< HxW, float in [0, 1]; undefined where the method has none
};

/// The trimap as an opacity: unknown is one half.
at::Tensor opacity(const at::Tensor& trimap);

/// Validates and predicts by some method: the four metrics of its mattes (`val`) and of the trimap
/// taken as one (`trimap`), mattes as PNG, truth and output of every picture in the run.
class Matting : public muster::Module<Photo, Matte> {
 public:
  Matting();

  void validation_step(const Batch& batch, muster::Step& step) override;
  std::vector<Matte> predict_step(const Batch& batch, muster::Step& step) override;
  void on_predict_batch_end(const std::vector<Matte>& mattes, const Batch& batch,
                            muster::Step& step) override;

 protected:
  [[nodiscard]] virtual Matte matte(const Photo& photo) = 0;

 private:
  muster::MattingMetric errors_{{.truth_range = muster::AlphaRange::byte}};
  muster::MattingMetric trimap_errors_{{.truth_range = muster::AlphaRange::byte}};
};

}  // namespace matting
