// Image matting on several processes: a network is trained on crops; four metrics for the unknown
// region and the whole image, of every image, once each; mattes as PNG; truth and output of every
// image in the run.
//
//   matting fit|validate|predict --devices 2 --run_dir runs/demo [--ckpt_path best]

#include "crops.h"
#include "guided_filter.h"
#include "trained_matting.h"

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <filesystem>
#include <memory>
#include <string>

namespace {

using matting::Photo;
using matting::Split;

struct ModelOptions {
  std::string name = "unet";   // unet or guided_filter
  double lr = 3e-3;            // of the network, at its highest
  double weight_decay = 1e-2;  // of the network
  int64_t radius = 24;         // of the filter's window, pixels
  double eps = 1e-4;           // how much the image must vary for the filter to follow it
};

struct DataOptions {
  std::string icons = "/usr/share/icons/Adwaita/512x512";  // PNG icons with an alpha channel
  std::string photographs =
      "";                  // astronaut, chelsea, coffee and rocket; "" is the build's own folder
  int64_t band = 10;       // half width of the trimap's unknown band, pixels
  int64_t batch_size = 4;  // crops that a rank trains on at a time
  int64_t crop = 96;       // side of a crop, pixels
  int64_t repeats = 8;     // crops of each icon an epoch
  int num_workers = 1;     // threads that load samples
};

/// The filtered trimap where it is unknown, the trimap elsewhere.
class GuidedMatting : public matting::Matting {
 public:
  explicit GuidedMatting(const matting::GuidedFilterOptions& filter) : filter_{filter} {}

 protected:
  [[nodiscard]] matting::Matte matte(const Photo& photo) override {
    const auto known = matting::opacity(photo.trimap);
    const auto filtered = matting::guided_filter(photo.image, known, filter_).clamp(0, 1);
    return {at::where(photo.trimap == 128, filtered, known), {}};
  }

 private:
  matting::GuidedFilterOptions filter_;
};

/// The photographs lie beside the programs' folder in the build.
std::filesystem::path photographs(const DataOptions& data) {
  if (!data.photographs.empty()) {
    return data.photographs;
  }
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "data" /
         "photographs";
}

muster::DataModule<Photo> loaders(const DataOptions& data) {
  const matting::IconOptions icons{data.icons, photographs(data), data.band};
  const auto whole = [&](Split split) {
    return muster::Loader<Photo>{matting::icons_on_photographs(icons, split),
                                 {.batch_size = 1, .num_workers = data.num_workers}};
  };
  return {
      .train_dataloader =
          muster::Loader<Photo>{
              matting::training_crops(icons, {.size = data.crop, .repeats = data.repeats}),
              {.batch_size = data.batch_size, .shuffle = true, .num_workers = data.num_workers}},
      .val_dataloader = whole(Split::val),
      .predict_dataloader = whole(Split::test)};
}

std::unique_ptr<matting::Matting> model_of(const ModelOptions& model, muster::Cli& cli,
                                           const muster::DataModule<Photo>& data) {
  if (model.name == "guided_filter") {
    return std::make_unique<GuidedMatting>(
        matting::GuidedFilterOptions{.radius = model.radius, .eps = model.eps});
  }
  muster::check(model.name == "unet", "model.name: expected unet or guided_filter, found {}",
                model.name);
  const auto steps = cli.trainer().estimated_stepping_batches(*data.train_dataloader);
  muster::check(steps.has_value() || cli.command() != "fit",
                "the schedule of the rate needs the number of steps: give --trainer.max_epochs or "
                "--trainer.max_steps");
  return std::make_unique<matting::TrainedMatting>(matting::TrainingOptions{
      .lr = model.lr, .weight_decay = model.weight_decay, .steps = steps.value_or(1)});
}

}  // namespace

int main(int argc, char** argv) {
  const auto program = [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    const auto loaders = ::loaders(data);
    const auto module = model_of(model, cli, loaders);
    cli.trainer().add_callback(std::make_shared<muster::LearningRateMonitor>());
    cli.run(*module, loaders);
  };
  return muster::run(argc, argv, program,
                     {.max_epochs = 20, .check_val_every_n_epoch = 5, .log_every_n_steps = 10});
}
