// A loop of one's own, without Module and Trainer: muster launch -n 2 own_loop
#include <muster/base/streams.h>
#include <muster/data/loader.h>
#include <muster/metrics/regression.h>
#include <muster/train/job.h>
#include <muster/train/own_loop.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linspace.h>
#include <cstdio>

struct Ramp {
  at::Tensor image;  // 8x8, in [0, 1]
  double level = 0;
};

int main(int argc, char** argv) try {
  muster::prepare_streams();
  muster::Group group = muster::job_group();
  muster::OwnLoop loop{group, {.run_dir = argc > 1 ? argv[1] : "runs/own_loop"}};
  const auto ramps = muster::make_dataset(5, [](int64_t index, muster::Rng&) {
    const double level = 0.2 * static_cast<double>(index);
    return Ramp{at::linspace(0, level, 64).reshape({8, 8}), level};
  });
  const muster::Loader<Ramp> loader{ramps, {.batch_size = 2}};
  muster::MeanSquaredError error;
  loop.begin_epoch(muster::Stage::validate);
  auto batches = loader.batches(0, loop.share());
  while (const auto batch = batches.next()) {
    muster::Step step = loop.at(*batch);
    const at::Tensor means = batch->stack(&Ramp::image).mean({1, 2}).to(at::kDouble);
    error.update(means, batch->stack(&Ramp::level) / 2);
    step.log("val/mean", means);
    for (const auto& ramp : batch->samples()) step.log_image("val/ramp", {ramp.image});
  }
  const muster::Report report = loop.end_epoch({{"val/mse", &error}});
  if (group.rank() == 0) std::printf("mean %g\n", *report.get("val/mean"));
  group.finish();
  muster::check_streams();
} catch (const muster::Error& error) {
  return std::fprintf(stderr, "own_loop: %s\n", error.what()), error.exit_code();
}
