#include "matting.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <string>

namespace matting {

namespace {

/// Every so many pictures of a validation one is shown, so that a training can be watched.
constexpr int64_t shown_every = 4;

std::string name_of(const Photo& photo) { return photo.dataset_name + "-" + photo.image_name; }

}  // namespace

at::Tensor opacity(const at::Tensor& trimap) {
  return at::where(trimap == 128, 0.5, trimap.to(at::kFloat) / 255);
}

Matting::Matting() {
  register_metric("val", errors_);
  register_metric("trimap", trimap_errors_);
}

void Matting::validation_step(const Batch& batch, muster::Step& step) {
  for (const auto& [index, photo] : batch.indexed()) {
    const muster::SampleName name{photo.dataset_name, photo.image_name};
    const at::Tensor alpha = matte(photo).alpha;
    errors_.update(index, alpha, photo.alpha, photo.trimap, name);
    trimap_errors_.update(index, opacity(photo.trimap), photo.alpha, photo.trimap, name);
    if (index % shown_every == 0) {
      step.log_image("val/mattes", {photo.image, photo.alpha, alpha},
                     {.captions = {"photo " + name_of(photo), "gt", "output"}, .index = index});
    }
  }
}

std::vector<Matte> Matting::predict_step(const Batch& batch, muster::Step& /*step*/) {
  std::vector<Matte> mattes;
  for (const auto& photo : batch.samples()) {
    mattes.push_back(matte(photo));
  }
  return mattes;
}

void Matting::on_predict_batch_end(const std::vector<Matte>& mattes, const Batch& batch,
                                   muster::Step& step) {
  size_t place = 0;
  for (const auto& [index, photo] : batch.indexed()) {
    const auto& [alpha, guidance] = mattes[place++];
    const std::string name = name_of(photo);
    step.save_prediction(index, name, alpha);
    step.log_image("photos", {photo.image}, {.captions = {name}});
    step.log_image("mattes", {photo.alpha, alpha}, {.captions = {"gt " + name, "output " + name}});
    if (guidance.defined()) {
      step.log_image("guidance", {guidance}, {.captions = {"guidance " + name}});
    }
  }
}

}  // namespace matting
