#include <muster/base/check.h>
#include <muster/base/random.h>
#include <muster/data/sampler.h>

#include <algorithm>
#include <numeric>

namespace muster {

Sampler::Sampler(int64_t samples, const SamplerOptions& options)
    : samples_{samples}, options_{options} {
  check(options.batch_size >= 1, "batch_size must be at least 1, found {}", options.batch_size);
  check(samples >= 0, "a data set has 0 samples or more, found {}", samples);
}

int64_t Sampler::batches() const {
  const int64_t full = samples_ / options_.batch_size;
  const bool rest = samples_ % options_.batch_size != 0;
  return rest && !options_.drop_last ? full + 1 : full;
}

int64_t Sampler::samples_in(int64_t k) const {
  check(k >= 0 && k < batches(), "batch {} is not among the {} of an epoch", k, batches());
  return std::min(options_.batch_size, samples_ - k * options_.batch_size);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  check(epoch >= 0, "epochs count from 0, found {}", epoch);
  std::vector<int64_t> order(static_cast<size_t>(samples_));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options_.shuffle) {
    Rng{options_.seed, static_cast<uint64_t>(epoch)}.shuffle(order);
  }
  return order;
}

std::vector<int64_t> Sampler::batch(const std::vector<int64_t>& order, int64_t k) const {
  const auto first = order.begin() + k * options_.batch_size;
  return {first, first + samples_in(k)};
}

int64_t batches_of_rank(int64_t batches, int rank, int world) {
  check(world >= 1 && rank >= 0 && rank < world, "rank {} is not among {} ranks", rank, world);
  return batches <= rank ? 0 : (batches - rank - 1) / world + 1;
}

}  // namespace muster
