// Each rank predicts some of the slices of a volume and logs them; all of them are in the run, once
// each.
//
//   log_images predict --devices 2 [--model.when batch|epoch]

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/rot90.h>

#include <string>
#include <vector>

namespace {

struct Slice {
  at::Tensor gt;  // HxW, in [0, 1]
  int64_t axis, slice;
};

struct Prediction {
  at::Tensor gt, output;
  int64_t axis, slice;
};

enum class When { batch, epoch };
constexpr auto enum_names(When /*unused*/) {
  return std::array{std::pair{"batch", When::batch}, std::pair{"epoch", When::epoch}};
}

struct ModelOptions {
  When when = When::batch;  // the hook that logs: on_predict_batch_end or on_predict_epoch_end
};
struct DataOptions {
  int64_t batch_size = 1;  // slices a batch
};

/// Slices along other axes than 0 were stored turned by 180 degrees and mirrored.
at::Tensor upright(const at::Tensor& image, int64_t axis) {
  return axis != 0 ? at::rot90(image, 2, {0, 1}).flip(1) : image;
}

std::vector<Slice> four_slices() {
  std::vector<Slice> slices;
  const std::vector<std::pair<int64_t, int64_t>> places{{0, 7}, {1, 3}, {2, 5}, {0, 11}};
  for (const auto& [axis, slice] : places) {
    const auto y = at::linspace(-1, 1, 96).unsqueeze(1);
    const auto x = at::linspace(-1, 1, 128 + 16 * axis).unsqueeze(0);
    const double shift = 0.05 * static_cast<double>(slice);
    const auto ball = ((x - shift).pow(2) + (y + shift).pow(2)).sqrt().mul(-3).add(1.5).clamp(0, 1);
    slices.push_back({(0.7 * ball + 0.3 * (y + 1) / 2 * (x + 1) / 2).contiguous(), axis, slice});
  }
  return slices;
}

class Smoother : public muster::Module<Slice, Prediction> {
 public:
  explicit Smoother(When when) : when_{when} {}

  std::vector<Prediction> predict_step(const Batch& batch, muster::Step& /*step*/) override {
    std::vector<Prediction> predictions;
    for (const auto& [index, sample] : batch.indexed()) {
      const auto output =
          at::avg_pool2d(sample.gt.unsqueeze(0), {5, 5}, {1, 1}, {2, 2}, false, false);
      predictions.push_back({sample.gt, output.squeeze(0), sample.axis, sample.slice});
    }
    return predictions;
  }

  void on_predict_batch_end(const std::vector<Prediction>& predictions, const Batch& batch,
                            muster::Step& step) override {
    for (size_t i = 0; i < predictions.size(); ++i) {
      if (when_ == When::batch) {
        log(predictions[i], batch.indices()[i], step);
      } else {
        kept_.emplace_back(batch.indices()[i], predictions[i]);
      }
    }
  }

  void on_predict_epoch_end(muster::Step& step) override {
    for (const auto& [index, prediction] : kept_) {
      log(prediction, index, step);
    }
    kept_.clear();
  }

 private:
  static void log(const Prediction& p, int64_t index, muster::Step& step) {
    const std::string place = "_" + std::to_string(p.axis) + "_" + std::to_string(p.slice);
    step.log_image("eval_output", {upright(p.gt, p.axis), upright(p.output, p.axis)},
                   {.captions = {"gt_data" + place, "output_model" + place}, .index = index});
  }

  When when_;
  std::vector<std::pair<int64_t, Prediction>> kept_;
};

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    Smoother smoother{model.when};
    const muster::Loader<Slice> slices{four_slices(), {.batch_size = data.batch_size}};
    cli.run(smoother, muster::DataModule<Slice>{.predict_dataloader = slices});
  });
}
