// Scores six samples and predicts pictures, with the fault that --model.fault names: what it does
// then depends on the rank, or on the number of ranks, and `muster check` has to find it.

#include <muster/muster.h>
#include <muster/train/environment.h>

#include <ATen/ops/full.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Sample {
  double score = 0;
  std::string name{};
};

struct Picture {
  at::Tensor pixels;
};

enum class Fault {
  none,
  metric,
  cell,
  row,
  sample,
  image,
  prediction,
  lost,
  extra,
  threads,
  fails
};
constexpr auto enum_names(Fault /*unused*/) {
  return std::array{std::pair{"none", Fault::none},     std::pair{"metric", Fault::metric},
                    std::pair{"cell", Fault::cell},     std::pair{"row", Fault::row},
                    std::pair{"sample", Fault::sample}, std::pair{"image", Fault::image},
                    std::pair{"lost", Fault::lost},     std::pair{"prediction", Fault::prediction},
                    std::pair{"extra", Fault::extra},   std::pair{"threads", Fault::threads},
                    std::pair{"fails", Fault::fails}};
}

struct ModelOptions {
  Fault fault = Fault::none;
};
struct DataOptions {
  int64_t samples = 6;
};

at::Tensor picture(double level) { return at::full({4, 6}, level); }

class Scorer : public muster::Module<Sample, Picture> {
 public:
  explicit Scorer(Fault fault) : fault_{fault} {}

  void validation_step(const Batch& batch, muster::Step& step) override {
    if (is(Fault::fails, step)) {
      throw std::runtime_error{"this rank does not like its batch"};
    }
    for (const auto& [index, sample] : batch.indexed()) {
      const bool other = is(Fault::metric, step) || is(Fault::threads, step);
      step.log("score", sample.score + (other ? 0.25 : 0.0), {.batch_size = 1});
      if (!is(Fault::row, step)) {
        step.log_table("val", {"name", "score"},
                       {{sample.name, sample.score + (is(Fault::cell, step) ? 0.25 : 0.0)}},
                       {.indices = {index}});
      }
      step.log_image("shown", {picture(is(Fault::image, step) ? 0.75 : 0.5)},
                     {.captions = {sample.name}, .index = index});
    }
  }

  std::vector<Picture> predict_step(const Batch& batch, muster::Step& step) override {
    std::vector<Picture> pictures;
    for (const auto& [index, sample] : batch.indexed()) {
      pictures.push_back({picture(is(Fault::prediction, step) ? 0.75 : 0.5)});
      if (!is(Fault::lost, step)) {
        step.save_prediction(index, sample.name, pictures.back().pixels);
      }
      if (is(Fault::extra, step)) {
        step.save_prediction(index, "more", pictures.back().pixels);
      }
    }
    return pictures;
  }

 private:
  [[nodiscard]] bool is(Fault fault, const muster::Step& step) const {
    return fault_ == fault && step.rank() == 1;
  }

  Fault fault_;
};

std::vector<Sample> samples(int64_t count) {
  std::vector<Sample> all;
  for (int64_t i = 0; i < count; ++i) {
    all.push_back({static_cast<double>(i), "sample-" + std::string(1, static_cast<char>('a' + i))});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    auto [model, data] = cli.options<ModelOptions, DataOptions>();
    Scorer scorer{model.fault};
    const int ranks = cli.trainer().group().size();
    if (model.fault == Fault::sample && ranks > 1) {
      --data.samples;
    }
    if (model.fault == Fault::threads) {
      muster::set_compute_threads(ranks);
    }
    const muster::Loader<Sample> loader{samples(data.samples), {.batch_size = 2}};
    cli.run(scorer,
            muster::DataModule<Sample>{.val_dataloader = loader, .predict_dataloader = loader});
  });
}
