#include "sync_work.h"

#include <muster/base/random.h>
#include <muster/metrics/aggregate.h>

#include <cmath>
#include <span>

namespace bench {

namespace {

constexpr int64_t batch_size = 8;
constexpr int64_t kinds = 5;

/// Of several decades, so that rounding would show.
std::vector<double> values_of_rank(int64_t rank) {
  muster::Rng rng{17, static_cast<uint64_t>(rank)};
  std::vector<double> values(samples_of_rank);
  for (double& value : values) {
    value = std::ldexp(rng.uniform(-1.0, 1.0), static_cast<int>(rng.below(40)) - 20);
  }
  return values;
}

std::unique_ptr<muster::Metric> make_metric(int64_t kind) {
  switch (kind) {
    case 0:
      return std::make_unique<muster::Mean>();
    case 1:
      return std::make_unique<muster::Sum>();
    case 2:
      return std::make_unique<muster::Min>();
    case 3:
      return std::make_unique<muster::Max>();
    default:
      return std::make_unique<muster::StandardDeviation>();
  }
}

void update(muster::Metric& metric, int64_t kind, std::span<const double> values) {
  switch (kind) {
    case 0:
      return static_cast<muster::Mean&>(metric).update(values);
    case 1:
      return static_cast<muster::Sum&>(metric).update(values);
    case 2:
    case 3:
      return static_cast<muster::Extreme&>(metric).update(values);
    default:
      return static_cast<muster::StandardDeviation&>(metric).update(values);
  }
}

std::string name_of(const char* group, int64_t number) {
  return std::string{group} + "/metric_" + std::to_string(number);
}

}  // namespace

SyncWork::SyncWork() {
  for (int64_t i = 0; i < metrics_of_work / 2; ++i) {
    metrics_.push_back(make_metric(i % kinds));
    named_.emplace_back(name_of("registered", i), metrics_.back().get());
  }
}

void SyncWork::add_rank(int64_t rank) {
  auto values = values_of_rank(rank);
  for (int64_t name = 0; name < metrics_of_work / 2; ++name) {
    const std::string logged = name_of("val", name);
    for (int64_t batch = 0; batch < samples_of_rank / batch_size; ++batch) {
      const double value = values[static_cast<size_t>(batch * batch_size)];
      ledger_.log(logged, value + static_cast<double>(name), batch_size, muster::ReduceFx::mean,
                  {.loader = 0, .batch = batch * 1024 + rank, .call = name});
    }
  }
  ledger_.add_samples(samples_of_rank);
  for (size_t i = 0; i < metrics_.size(); ++i) {
    for (double& value : values) {
      value += 1.0 / 3;
    }
    update(*metrics_[i], static_cast<int64_t>(i) % kinds, values);
  }
}

}  // namespace bench
