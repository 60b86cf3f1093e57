#include <muster/base/check.h>
#include <muster/base/random.h>
#include <muster/data/sampler.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster {

namespace {

int64_t checked_samples(int64_t samples) {
  check(samples >= 0, "a data set has 0 samples or more, found {}", samples);
  return samples;
}

}  // namespace

SequentialSampler::SequentialSampler(int64_t samples) : samples_{checked_samples(samples)} {}

std::vector<int64_t> SequentialSampler::order(uint64_t /*seed*/, int64_t epoch) const {
  check(epoch >= 0, "epochs count from 0, found {}", epoch);
  std::vector<int64_t> order(static_cast<size_t>(samples_));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

RandomSampler::RandomSampler(int64_t samples) : samples_{checked_samples(samples)} {}

std::vector<int64_t> RandomSampler::order(uint64_t seed, int64_t epoch) const {
  auto order = SequentialSampler{samples_}.order(seed, epoch);
  Rng{seed, static_cast<uint64_t>(epoch)}.shuffle(order);
  return order;
}

BatchPlan::BatchPlan(std::vector<int64_t> order, int64_t batch_size, bool drop_last)
    : order_{std::move(order)} {
  const auto samples = static_cast<int64_t>(order_.size());
  const int64_t batches = batches_of_samples(samples, batch_size, drop_last);
  ends_.reserve(static_cast<size_t>(batches));
  for (int64_t k = 1; k <= batches; ++k) {
    ends_.push_back(std::min(k * batch_size, samples));
  }
}

BatchPlan::BatchPlan(const std::vector<std::vector<int64_t>>& batches) {
  ends_.reserve(batches.size());
  for (const auto& batch : batches) {
    check(!batch.empty(), "batch {} of a batch sampler has no index; leave such a batch out",
          ends_.size());
    order_.insert(order_.end(), batch.begin(), batch.end());
    ends_.push_back(static_cast<int64_t>(order_.size()));
  }
}

std::span<const int64_t> BatchPlan::batch(int64_t k) const {
  check(k >= 0 && k < size(), "batch {} is not among the {} of an epoch", k, size());
  const auto place = static_cast<size_t>(k);
  const int64_t first = k == 0 ? 0 : ends_[place - 1];
  return std::span{order_}.subspan(static_cast<size_t>(first),
                                   static_cast<size_t>(ends_[place] - first));
}

void BatchPlan::check_indices(int64_t samples) const {
  for (const int64_t index : order_) {
    check(index >= 0 && index < samples,
          "a sampler gave index {}, which its data set of {} samples does not have", index,
          samples);
  }
}

int64_t batches_of_samples(int64_t samples, int64_t batch_size, bool drop_last) {
  check(batch_size >= 1, "batch_size must be at least 1, found {}", batch_size);
  const int64_t full = samples / batch_size;
  return samples % batch_size != 0 && !drop_last ? full + 1 : full;
}

int64_t batches_of_rank(int64_t batches, int rank, int world) {
  check(world >= 1 && rank >= 0 && rank < world, "rank {} is not among {} ranks", rank, world);
  return batches <= rank ? 0 : (batches - rank - 1) / world + 1;
}

}  // namespace muster
