// Image matting on several processes: four metrics for the unknown region and the whole image, of
// every image, once each; mattes as PNG; truth and output of every image in the run.
//
//   matting validate|predict --devices 2 --run_dir runs/demo

#include "guided_filter.h"
#include "icons.h"

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <filesystem>
#include <string>
#include <vector>

namespace {

using matting::Photo;
using matting::Split;

struct ModelOptions {
  std::string name = "guided_filter";  // guided_filter
  int64_t radius = 24;                 // of the filter's window, pixels
  double eps = 1e-4;                   // how much the image must vary to be followed
};

struct DataOptions {
  std::string icons = "/usr/share/icons/Adwaita/512x512";  // PNG icons with an alpha channel
  std::string photographs =
      "";               // astronaut, chelsea, coffee and rocket; "" is the build's own folder
  int64_t band = 10;    // half width of the trimap's unknown band, pixels
  int num_workers = 1;  // threads that load samples
};

struct Matte {
  at::Tensor alpha;  // HxW, float in [0, 1]
};

/// The trimap as an opacity: unknown is one half.
at::Tensor opacity(const at::Tensor& trimap) {
  return at::where(trimap == 128, 0.5, trimap.to(at::kFloat) / 255);
}

class GuidedMatting : public muster::Module<Photo, Matte> {
 public:
  explicit GuidedMatting(const ModelOptions& options)
      : filter_{.radius = options.radius, .eps = options.eps} {
    register_metric("val", errors_);
    register_metric("trimap", trimap_errors_);
  }

  void validation_step(const Batch& batch, muster::Step& /*step*/) override {
    for (const auto& [index, photo] : batch.indexed()) {
      const muster::SampleName name{photo.dataset_name, photo.image_name};
      errors_.update(index, matte(photo), photo.alpha, photo.trimap, name);
      trimap_errors_.update(index, opacity(photo.trimap), photo.alpha, photo.trimap, name);
    }
  }

  std::vector<Matte> predict_step(const Batch& batch, muster::Step& /*step*/) override {
    std::vector<Matte> mattes;
    for (const auto& photo : batch.samples()) {
      mattes.push_back({matte(photo)});
    }
    return mattes;
  }

  void on_predict_batch_end(const std::vector<Matte>& mattes, const Batch& batch,
                            muster::Step& step) override {
    size_t place = 0;
    for (const auto& [index, photo] : batch.indexed()) {
      const at::Tensor& alpha = mattes[place++].alpha;
      const std::string name = photo.dataset_name + "-" + photo.image_name;
      step.save_prediction(index, name, alpha);
      step.log_image("photos", {photo.image}, {.captions = {name}});
      step.log_image("mattes", {photo.alpha, alpha},
                     {.captions = {"gt " + name, "output " + name}});
    }
  }

 private:
  /// The filtered trimap where it is unknown, the trimap elsewhere.
  [[nodiscard]] at::Tensor matte(const Photo& photo) const {
    const auto known = opacity(photo.trimap);
    const auto filtered = matting::guided_filter(photo.image, known, filter_).clamp(0, 1);
    return at::where(photo.trimap == 128, filtered, known);
  }

  matting::GuidedFilterOptions filter_;
  muster::MattingMetric errors_{{.truth_range = muster::AlphaRange::byte}};
  muster::MattingMetric trimap_errors_{{.truth_range = muster::AlphaRange::byte}};
};

/// The photographs lie beside the programs' folder in the build.
std::filesystem::path photographs(const DataOptions& data) {
  if (!data.photographs.empty()) {
    return data.photographs;
  }
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "data" /
         "photographs";
}

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    muster::check(model.name == "guided_filter", "model.name: expected guided_filter, found {}",
                  model.name);
    const matting::IconOptions icons{data.icons, photographs(data), data.band};
    const auto loader = [&, workers = data.num_workers](Split split) {
      return muster::Loader<Photo>{matting::icons_on_photographs(icons, split),
                                   {.batch_size = 1, .num_workers = workers}};
    };
    GuidedMatting module{model};
    cli.run(module, muster::DataModule<Photo>{.val_dataloader = loader(Split::val),
                                              .predict_dataloader = loader(Split::test)});
  });
}
