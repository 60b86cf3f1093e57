#include "random_run.h"

#include <muster/base/format.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/table_metric.h>
#include <muster/train/trainer.h>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace muster::test {

namespace {

struct Sample {
  int64_t index = 0;
  int64_t loader = 0;
};

/// A sampler of all indices, or of one too many or too few.
class Listed : public Sampler {
 public:
  explicit Listed(std::vector<int64_t> indices) : indices_{std::move(indices)} {}
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  [[nodiscard]] std::vector<int64_t> order(uint64_t, int64_t) const override { return indices_; }

 private:
  std::vector<int64_t> indices_;
};

/// Batches of 1, 2, 3, 1, ... samples, from the last to the first.
class Growing : public BatchSampler {
 public:
  explicit Growing(int64_t samples) {
    for (int64_t left = samples, size = 1; left > 0; size = size % 3 + 1) {
      batches_.emplace_back();
      for (int64_t i = 0; i < size && left > 0; ++i) batches_.back().push_back(--left);
    }
  }
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(batches_.size()); }
  [[nodiscard]] std::vector<std::vector<int64_t>> batches(uint64_t, int64_t) const override {
    return batches_;
  }

 private:
  std::vector<std::vector<int64_t>> batches_{};
};

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

std::shared_ptr<const Dataset<Sample>> skipping(int64_t samples, int64_t loader, uint64_t seed) {
  return make_dataset(samples, [=](int64_t index, Rng&) -> std::optional<Sample> {
    Rng skip{seed, uint64_t{17}, static_cast<uint64_t>(index)};
    if (skip.uniform() < 0.4) return std::nullopt;
    return Sample{index, loader};
  });
}

std::shared_ptr<const IterableDataset<Sample>> streaming(int64_t samples, int64_t loader) {
  return make_iterable([=](const StreamContext&) {
    return [=, i = int64_t{0}]() mutable -> std::optional<Sample> {
      return i < samples ? std::optional{Sample{i++, loader}} : std::nullopt;
    };
  });
}

/// All that a seed decides.
struct Draw {
  explicit Draw(uint64_t its_seed) : seed{its_seed} {
    Rng rng{seed, uint64_t{1}};
    ranks = static_cast<int>(2 + rng.below(6));
    stage = static_cast<int>(rng.below(3));
    loaders = 1 + (rng.uniform() < 0.3 ? rng.below(3) : 0);
    limit = rng.uniform() < 0.3 ? rng.below(5) : -1;
    gathers = rng.uniform() < 0.3;
    share = rng.uniform();
  }

  [[nodiscard]] Rng rng(std::initializer_list<int64_t> place) const {
    std::vector<uint64_t> parts{seed, 2};
    uint64_t key = seed;
    for (const int64_t part : place) key = mix_key({key, static_cast<uint64_t>(part)});
    return Rng{key};
  }

  [[nodiscard]] Loader<Sample> loader(int64_t number, Fault fault) const {
    Rng rng = this->rng({100, number});
    const int64_t samples = rng.uniform() < 0.1 ? 0 : rng.below(18);
    LoaderOptions options{.batch_size = 1 + rng.below(4),
                          .shuffle = rng.uniform() < 0.3,
                          .drop_last = rng.uniform() < 0.2,
                          .num_workers = static_cast<int>(rng.below(3)),
                          .prefetch = 1 + rng.below(3),
                          .seed = seed};
    const auto dataset = make_dataset(samples, [number](int64_t index, Rng&) {
      return Sample{index, number};
    });
    const auto indices = first_numbers(samples);
    if (fault == Fault::repeated_sample || fault == Fault::dropped_sample) {
      options.shuffle = false;
      options.drop_last = false;
      return {dataset, std::make_shared<Listed>(indices), options};
    }
    switch (rng.below(6)) {
      case 0:
        return Loader<Sample>{skipping(samples, number, seed), options};
      case 1:
        options.shuffle = false;
        return Loader<Sample>{streaming(samples, number), options};
      case 2:
        options.shuffle = false;
        return {dataset, std::make_shared<Listed>(indices), options};
      case 3:
        return {dataset, std::make_shared<Growing>(samples),
                LoaderOptions{.num_workers = options.num_workers}};
      default:
        return Loader<Sample>{dataset, options};
    }
  }

  uint64_t seed;
  int ranks;
  int stage;
  int64_t loaders;
  int64_t limit;
  bool gathers;
  double share;  ///< of all calls that are made
};

/// The same loader with an index too many or too few, where it has samples.
Loader<Sample> broken(const Loader<Sample>& whole, int64_t number, Fault fault, bool& planted) {
  std::vector<int64_t> order;
  auto batches = whole.batches();
  while (const auto batch = batches.next()) {
    order.insert(order.end(), batch->indices().begin(), batch->indices().end());
  }
  const auto samples = static_cast<int64_t>(order.size());
  const auto dataset = make_dataset(samples, [number](int64_t index, Rng&) {
    return Sample{index, number};
  });
  if (samples > 0) {
    planted = true;
    if (fault == Fault::repeated_sample) order.push_back(order.front());
    if (fault == Fault::dropped_sample) order.pop_back();
  }
  return {dataset, std::make_shared<Listed>(order), whole.options()};
}

/// Logs what the draw says, in every hook.
class Drawn : public Module<Sample, Sample> {
 public:
  Drawn(const Draw& draw, Fault fault) : draw_{draw}, fault_{fault} {
    register_metric("mean_metric", mean_);
    register_metric("rows_metric", rows_);
  }

  bool planted = false;

  void setup(Step& step) override { around(0, step); }
  void on_validation_start(Step& step) override { around(1, step); }
  void on_validation_epoch_start(Step& step) override { around(2, step); }
  void on_validation_batch_start(const Batch& b, Step& step) override { within(3, b, step); }
  void validation_step(const Batch& b, Step& step) override { main_step(b, step); }
  void on_validation_batch_end(const Batch& b, Step& step) override { within(5, b, step); }
  void on_validation_epoch_end(Step& step) override { around(6, step); }
  void on_validation_end(Step& step) override { around(7, step); }
  void on_test_epoch_start(Step& step) override { around(2, step); }
  void test_step(const Batch& b, Step& step) override { main_step(b, step); }
  void on_test_batch_end(const Batch& b, Step& step) override { within(5, b, step); }
  void on_test_epoch_end(Step& step) override { around(6, step); }
  void on_predict_batch_start(const Batch& b, Step& step) override { within(3, b, step); }
  std::vector<Sample> predict_step(const Batch& b, Step& step) override {
    main_step(b, step);
    for (const auto& [index, sample] : b.indexed()) {
      step.save_prediction(index, "shade", shade(index, sample.loader));
    }
    return b.samples();
  }
  void on_predict_batch_end(const std::vector<Sample>& /*out*/, const Batch& b,
                            Step& step) override {
    within(5, b, step);
  }
  void on_predict_epoch_end(Step& step) override { around(6, step); }
  void teardown(Step& step) override { around(8, step); }

 private:
  static at::Tensor shade(int64_t index, int64_t loader) {
    return at::full({2, 3}, static_cast<double>(index * 5 + loader) / 200);
  }

  static double number(Rng& rng) {
    static constexpr std::array odd{-0.0, std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN(), 1e300, 1e-300};
    if (rng.uniform() < 0.02) return odd.at(static_cast<size_t>(rng.below(odd.size())));
    return (rng.uniform() - 0.5) * (rng.uniform() < 0.2 ? 1e12 : 1.0);
  }

  [[nodiscard]] bool happens(Rng& rng) const { return rng.uniform() < draw_.share; }

  void log_values(int where, std::optional<int64_t> weight, Rng& rng, Step& step) {
    static constexpr std::array ops{ReduceFx::mean, ReduceFx::sum, ReduceFx::min, ReduceFx::max};
    for (const ReduceFx op : ops) {
      const double value = number(rng);
      if (happens(rng)) {
        step.log(format("h{}/op{}", where, static_cast<int>(op)), value,
                 {.reduce_fx = op, .batch_size = weight});
      }
    }
  }

  /// A hook without a batch: one rank acts, any of them.
  void around(int where, Step& step) {
    Rng rng = draw_.rng({where});
    const int64_t actor = rng.below(7) % step.world_size();
    if (draw_.gathers) {
      check(step.all_gather(step.rank()).size() == static_cast<size_t>(step.world_size()),
            "a rank is missing");
    }
    if (step.rank() != actor) return;
    log_values(where, std::nullopt, rng, step);
    const int64_t index = rng.below(30);
    if (happens(rng)) {
      step.log_image(format("h{}", where), {shade(index, 9)}, {.index = index});
    }
    if (happens(rng)) {
      step.log_table(format("h{}", where), {"name", "x"},
                     {{std::string{"of the epoch"}, number(rng)}}, {.indices = {index}});
    }
    if (happens(rng)) step.log_text(format("h{}", where), format("text {}", index));
  }

  void main_step(const Batch& batch, Step& step) {
    if (draw_.gathers) {
      const auto all = step.all_gather(batch.batch_idx());
      check(std::is_sorted(all.begin(), all.end()) && !all.empty(), "the gather is in disorder");
    }
    within(4, batch, step);
    std::vector<double> each;
    for (const auto& [index, sample] : batch.indexed()) {
      Rng rng = draw_.rng({50, sample.loader, index});
      each.push_back(number(rng));
      const double value = number(rng);
      mean_.update(value, 1 + rng.below(3));
      const int64_t key = sample.loader * 1000 + index;
      rows_.update(key, {happens(rng) ? Cell{format("s{}", key)} : Cell{},
                         happens(rng) ? Cell{value} : Cell{}});
    }
    step.log("each", at::tensor(each, at::kDouble));
    Rng rng = draw_.rng({51, step.dataloader_idx(), batch.batch_idx()});
    std::optional<int64_t> weight{};
    if (fault_ == Fault::mean_of_means && step.world_size() > 1 && batch.size() > 1) {
      weight = 1;
      planted = true;
    }
    step.log("weighed", rng.uniform(), {.batch_size = weight});
  }

  void within(int where, const Batch& batch, Step& step) {
    Rng rng = draw_.rng({where, step.dataloader_idx(), batch.batch_idx()});
    log_values(where, std::nullopt, rng, step);
    if (happens(rng)) {
      for (const auto& [index, sample] : batch.indexed()) {
        int64_t shown = index;
        if (fault_ == Fault::swapped_images && step.world_size() > 1 && batch.size() > 1) {
          planted = true;
          if (index == batch.indices()[0]) shown = batch.indices()[1];
          if (index == batch.indices()[1]) shown = batch.indices()[0];
        }
        step.log_image(format("h{}", where), {shade(shown, sample.loader), shade(index, 8)},
                       {.captions = {format("shade {}", index), "again"}});
      }
    }
    if (happens(rng)) {
      std::vector<std::vector<Cell>> rows;
      for (const auto index : batch.indices()) {
        rows.push_back({format("row {}", index), happens(rng) ? Cell{number(rng)} : Cell{}});
      }
      step.log_table(format("h{}", where), {"name", "x"}, rows);
    }
    if (happens(rng)) step.log_text(format("h{}", where), format("batch {}", batch.batch_idx()));
  }

  const Draw& draw_;
  Fault fault_;
  Mean mean_{};
  TableMetric rows_{{{.name = "name", .kind = TableColumn::Kind::text}, {.name = "x"}}};
};

}  // namespace

int ranks_of_draw(uint64_t seed) { return Draw{seed}.ranks; }

bool run_draw(uint64_t seed, Fault fault, const std::string& run_dir, Group group) {
  const Draw draw{seed};
  TrainerOptions options{.run_dir = run_dir, .logger = false, .enable_progress_bar = false};
  const bool other_data = fault == Fault::repeated_sample || fault == Fault::dropped_sample;
  if (draw.limit >= 0 && !other_data) {
    options.limit_val_batches = options.limit_test_batches = options.limit_predict_batches =
        draw.limit;
  }
  Drawn module{draw, fault};
  bool planted = false;
  std::vector<Loader<Sample>> loaders;
  for (int64_t i = 0; i < draw.loaders; ++i) {
    loaders.push_back(draw.loader(i, fault));
    if (i == 0 && group.size() > 1 && other_data) {
      loaders.back() = broken(loaders.back(), i, fault, planted);
    }
  }
  std::vector<const Loader<Sample>*> list;
  list.reserve(loaders.size());
  for (const auto& loader : loaders) list.push_back(&loader);
  Trainer trainer{options, group};
  if (draw.stage == 0) trainer.validate(module, LoaderList<Sample>{list});
  if (draw.stage == 1) trainer.test(module, LoaderList<Sample>{list});
  if (draw.stage == 2) {
    const auto all = trainer.predict(module, LoaderList<Sample>{list});
    const bool ordered = std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::pair{a.loader, a.index} < std::pair{b.loader, b.index};
    });
    check(ordered, "predictions are in disorder");
  }
  group.finish();
  return planted || module.planted;
}

}  // namespace muster::test
