// Batch normalization over ranks, without a training around it: its statistics and gradients beside
// torch's of all ranks' batches in one.

#include "src/train/sync_batch_norm_function_internal.h"
#include "tests/base/expect_error.h"

#include <muster/base/check.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace muster::test {
namespace {

constexpr int64_t channels = 3;
constexpr double eps = 1e-5;

/// Reproducible numbers in [-1, 1).
at::Tensor numbers(const std::vector<int64_t>& shape, int64_t seed) {
  at::Tensor out = at::empty(shape, at::kDouble);
  auto* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    values[i] = std::remainder(static_cast<double>((i + 1) * (seed + 7)) * 0.7548776662466927, 2.0);
  }
  return out;
}

/// A batch of `rows` samples of the shape [channels, ...space], with weight and bias.
struct Layer {
  explicit Layer(const at::Tensor& its_x)
      : x{its_x.clone().set_requires_grad(true)},
        weight{(numbers({channels}, 50) + 1.5).to(x.scalar_type()).set_requires_grad(true)},
        bias{numbers({channels}, 51).to(x.scalar_type()).set_requires_grad(true)} {}
  at::Tensor x, weight, bias;
};

/// A loss in which each output counts otherwise; `part` is its place in all ranks' batches.
at::Tensor loss_of(const at::Tensor& y, const at::Tensor& part) {
  return (y.to(at::kDouble) * part + y.to(at::kDouble).square() * part.square()).sum();
}

struct Data {
  std::vector<int64_t> rows;   ///< of each rank
  std::vector<int64_t> space;  ///< height, width, ...
  double offset = 0.0;         ///< of the values from zero
  at::ScalarType dtype = at::kDouble;

  [[nodiscard]] std::vector<int64_t> shape() const {
    std::vector<int64_t> out{0, channels};
    for (const int64_t n : rows) out[0] += n;
    out.insert(out.end(), space.begin(), space.end());
    return out;
  }
  [[nodiscard]] at::Tensor x() const { return (numbers(shape(), 1) + offset).to(dtype); }
  [[nodiscard]] at::Tensor weights() const { return numbers(shape(), 2); }
  /// Of a tensor of all ranks.
  [[nodiscard]] at::Tensor part(const at::Tensor& all, int rank) const {
    int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += rows[static_cast<size_t>(r)];
    return all.slice(0, first, first + rows[static_cast<size_t>(rank)]);
  }
};

double difference(const at::Tensor& left, const at::Tensor& right) {
  return (left.to(at::kDouble) - right.to(at::kDouble)).abs().max().item<double>();
}

/// Compares outputs, statistics and gradients of all ranks with torch's; differences up to `limit`.
void expect_as_one(const Data& data, double limit) {
  Layer one{data.x()};
  at::Tensor mean = at::zeros({channels}, data.dtype);
  at::Tensor var = at::zeros({channels}, data.dtype);
  const at::Tensor y =
      at::batch_norm(one.x, one.weight, one.bias, mean, var, true, 1.0, eps, false);
  loss_of(y, data.weights()).backward();

  std::mutex mutex;
  std::vector<Layer> layers(data.rows.size(), Layer{at::zeros({0, channels}, data.dtype)});
  std::vector<NormalizedBatch> batches(data.rows.size());
  run_threads(static_cast<int>(data.rows.size()), [&](Group& group) {
    Layer mine{data.part(data.x(), group.rank())};
    group.begin_section("fit", 0);
    group.move_to(0, 0);
    const auto batch = synced_batch_norm(group, "bn", mine.x, mine.weight, mine.bias, eps);
    EXPECT_TRUE(batch.has_backward);
    const at::Tensor loss = loss_of(batch.output, data.part(data.weights(), group.rank()));
    EXPECT_EQ(backward_gathers(loss), 1);
    loss.backward();
    group.finish();
    const std::lock_guard lock{mutex};
    layers[static_cast<size_t>(group.rank())] = mine;
    batches[static_cast<size_t>(group.rank())] = batch;
  });

  at::Tensor weight_grad = at::zeros({channels}, at::kDouble);
  at::Tensor bias_grad = at::zeros({channels}, at::kDouble);
  for (size_t r = 0; r < layers.size(); ++r) {
    const auto rank = static_cast<int>(r);
    const ChannelStatistics& all = batches[r].statistics;
    EXPECT_EQ(all.count, data.x().numel() / channels);
    EXPECT_EQ(all.first_rank, 0);
    EXPECT_TRUE(all.mean.equal(batches[0].statistics.mean));
    EXPECT_TRUE(all.squares.equal(batches[0].statistics.squares));
    const double scale = std::max(1.0, std::abs(data.offset));
    EXPECT_LT(difference(all.mean, mean), limit * scale);
    EXPECT_LT(difference(all.squares / static_cast<double>(all.count - 1), var), limit);
    EXPECT_EQ(batches[r].output.scalar_type(), data.dtype);
    if (data.rows[r] > 0) {
      EXPECT_LT(difference(batches[r].output, data.part(y, rank)), limit);
      EXPECT_LT(difference(layers[r].x.grad(), data.part(one.x.grad(), rank)), limit);
    }
    weight_grad += layers[r].weight.grad().to(at::kDouble);
    bias_grad += layers[r].bias.grad().to(at::kDouble);
  }
  EXPECT_LT(difference(weight_grad, one.weight.grad()), 20 * limit);
  EXPECT_LT(difference(bias_grad, one.bias.grad()), 20 * limit);
}

TEST(SyncBatchNormFunction, GivesWhatOneProcessGivesWithAllBatchesInOne) {
  expect_as_one({.rows = {4, 4}, .space = {}}, 1e-12);
  expect_as_one({.rows = {4, 1, 3}, .space = {}}, 1e-12);
  expect_as_one({.rows = {2, 5, 1}, .space = {3}}, 1e-12);
  expect_as_one({.rows = {1, 2}, .space = {4, 5}}, 1e-12);
  expect_as_one({.rows = {3, 1}, .space = {2, 3, 2}}, 1e-12);
}

TEST(SyncBatchNormFunction, ABatchWithoutRowsAddsNothing) {
  expect_as_one({.rows = {0, 4, 3}, .space = {}}, 1e-12);
}

TEST(SyncBatchNormFunction, KeepsTheVarianceOfValuesThatAreFarFromZero) {
  // A sum of squares would leave nothing of it.
  expect_as_one({.rows = {30, 10, 20}, .space = {}, .offset = 1e8}, 1e-5);
}

TEST(SyncBatchNormFunction, ComputesStatisticsOfShorterTypesInDouble) {
  expect_as_one({.rows = {4, 1, 3}, .space = {3}, .dtype = at::kFloat}, 1e-5);
  // 1000 values whose mean bfloat16 sums could not give.
  std::vector<at::Tensor> outputs(2);
  run_threads(2, [&](Group& group) {
    const at::Tensor x = (numbers({500, channels}, group.rank()) + 3).to(at::kBFloat16);
    const at::Tensor weight = at::ones({channels});
    const auto batch = synced_batch_norm(group, "bn", x, weight, at::zeros({channels}), eps);
    EXPECT_EQ(batch.output.scalar_type(), at::kBFloat16);
    outputs[static_cast<size_t>(group.rank())] = batch.output.to(at::kDouble);
  });
  const at::Tensor mean = at::cat(outputs).mean(0);
  EXPECT_LT(mean.abs().max().item<double>(), 1e-3);
}

TEST(SyncBatchNormFunction, RanksWithoutABatchAttend) {
  // Rank 0 has no batch in round 1, and rank 2 none in rounds 1 and 2.
  std::mutex mutex;
  std::vector<int64_t> counts;
  run_threads(3, [&](Group& group) {
    group.begin_section("fit", 0);
    const auto run = [&](int64_t round) {
      group.move_to(0, round);
      Layer layer{numbers({4, channels}, group.rank())};
      auto batch = synced_batch_norm(group, "bn", layer.x, layer.weight, layer.bias, eps);
      EXPECT_EQ(batch.statistics.first_rank, round == 1 ? 1 : 0);
      const std::lock_guard lock{mutex};
      counts.push_back(batch.statistics.count);
      return batch.output;
    };
    run(0).sum().backward();
    if (group.rank() == 1) run(1).sum().backward();
    at::Tensor loss;
    if (group.rank() != 2) loss = run(2).sum();
    group.move_to(1, 0);
    group.barrier();
    if (loss.defined()) {
      loss.backward();
    } else {
      attend_backward_gathers(group, 1);
    }
    group.finish();
  });
  std::sort(counts.begin(), counts.end());
  EXPECT_EQ(counts, (std::vector<int64_t>{4, 8, 8, 12, 12, 12}));
}

/// The messages of the Errors that ranks get from `body`, each of `kind`.
std::vector<std::string> errors(int ranks, ErrorKind kind,
                                const std::function<void(Group&, Layer&)>& body) {
  std::mutex mutex;
  std::vector<std::string> messages(static_cast<size_t>(ranks));
  run_threads(ranks, [&](Group& group) {
    Layer layer{numbers({4, channels}, group.rank())};
    const Error error = error_of([&] { body(group, layer); });
    const std::lock_guard lock{mutex};
    EXPECT_EQ(error.kind(), kind) << error.what();
    messages[static_cast<size_t>(group.rank())] = error.what();
  });
  return messages;
}

TEST(SyncBatchNormFunction, OtherLayersOnOneRankAreAMismatchOnAll) {
  const auto run = [](Group& group, Layer& layer, const std::string& name) {
    return synced_batch_norm(group, name, layer.x, layer.weight, layer.bias, eps).output;
  };
  const auto check_messages = [](const std::vector<std::string>& messages,
                                 const std::string& part) {
    for (const auto& message : messages) EXPECT_TRUE(contains(message, part)) << message;
  };
  check_messages(errors(2, ErrorKind::mismatch,
                        [&](Group& group, Layer& layer) {
                          run(group, layer, group.rank() == 0 ? "net.a" : "net.b");
                        }),
                 "rank 0 runs 'net.a' of 3 channels, rank 1 runs 'net.b' of 3 channels");
  check_messages(errors(3, ErrorKind::mismatch,
                        [&](Group& group, Layer& layer) {
                          const c10::AutoGradMode grad{group.rank() != 2};
                          run(group, layer, "bn");
                        }),
                 "rank 2 runs 'bn' of 3 channels without gradients");
  // Rank 1 runs the second layer twice, or only in forward: a collective from another line.
  check_messages(errors(2, ErrorKind::mismatch,
                        [&](Group& group, Layer& layer) {
                          at::Tensor y = run(group, layer, "bn");
                          if (group.rank() == 1) y = run(group, layer, "bn");
                          y.sum().backward();
                        }),
                 "call from different lines");
  check_messages(errors(2, ErrorKind::mismatch,
                        [&](Group& group, Layer& layer) {
                          const at::Tensor a = run(group, layer, "a").sum();
                          const at::Tensor b = run(group, layer, "b").sum();
                          (group.rank() == 0 ? a : b).backward();
                        }),
                 "disagree on the next SyncBatchNorm in backward");
}

TEST(SyncBatchNormFunction, OneValueAChannelHasNoVariance) {
  for (const auto& message : errors(2, ErrorKind::user, [](Group&group, Layer&layer) {
         const at::Tensor x = layer.x.slice(0, 0, group.rank());
         synced_batch_norm(group, "bn", x, layer.weight, layer.bias, eps);
       })) {
    EXPECT_TRUE(contains(message, "more than one value a channel")) << message;
  }
}

TEST(SyncBatchNormFunction, ABackwardInAnotherThreadOrToBeDifferentiatedIsRefused) {
  for (const bool elsewhere : {true, false}) {
    for (const auto& message : errors(2, ErrorKind::usage, [&](Group&group, Layer&layer) {
           const at::Tensor loss =
               synced_batch_norm(group, "bn", layer.x, layer.weight, layer.bias, eps).output.sum();
           std::exception_ptr error;
           const auto backward = [&] {
             try {
               torch::autograd::grad({loss}, {layer.x}, {}, !elsewhere, !elsewhere);
             } catch (...) {
               error = std::current_exception();
             }
           };
           if (elsewhere) {
             std::thread{backward}.join();
           } else {
             backward();
           }
           if (error) std::rethrow_exception(error);
         })) {
      EXPECT_TRUE(contains(message, elsewhere ? "it is for the CPU so far" : "second derivatives"))
          << message;
    }
  }
}

TEST(SyncBatchNormFunction, CountsTheGathersOfWhatALossDependsOn) {
  run_threads(2, [](Group& group) {
    Layer layer{numbers({4, channels}, group.rank())};
    const auto run = [&](const at::Tensor& x) {
      return synced_batch_norm(group, "bn", x, layer.weight, layer.bias, eps).output;
    };
    const at::Tensor a = run(layer.x);
    const at::Tensor both = run(a) + a;
    EXPECT_EQ(backward_gathers(a.sum()), 1);
    EXPECT_EQ(backward_gathers(both.sum()), 2);
    EXPECT_EQ(backward_gathers(both.detach().sum()), 0);
  });
}

}  // namespace
}  // namespace muster::test
