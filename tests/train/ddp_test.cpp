#include "ddp_net.h"

#include <muster/base/check.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <mutex>

namespace muster::test {
namespace {

/// What `body` gives on each of `ranks` threads.
template <typename Result>
std::vector<Result> on_threads(int ranks, const std::function<Result(Group&)>& body) {
  std::vector<Result> all(static_cast<size_t>(ranks));
  run_threads(ranks, [&](Group& group) { all[static_cast<size_t>(group.rank())] = body(group); });
  return all;
}

/// The message of the Error of `kind` that each rank gets.
std::vector<std::string> errors_on_threads(int ranks, ErrorKind kind,
                                           const std::function<void(Group&)>& body) {
  return on_threads<std::string>(ranks, [&](Group& group) -> std::string {
    try {
      body(group);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      group.barrier();
      return error.what();
    }
    return "no error";
  });
}

void expect_exact(const std::vector<DdpResult>& ranks, const DdpCase& what) {
  const at::Tensor expected = train_alone(what);
  const double limit = what.dtype == at::kDouble ? 1e-12 : 1e-4;
  for (const auto& rank : ranks) {
    const at::Tensor difference = (rank.parameters - expected).abs();
    const at::Tensor allowed = expected.abs().clamp_min(what.dtype == at::kDouble ? 1 : 0.01);
    EXPECT_LT((difference / allowed).max().item<double>(), limit)
        << "W " << ranks.size() << ", accumulate " << what.accumulate;
    EXPECT_EQ(rank.gradients, ranks[0].gradients);
    EXPECT_TRUE(rank.parameters.equal(ranks[0].parameters));
  }
}

TEST(Ddp, TrainsAsOneProcessWithAccumulatedBatches) {
  for (const int ranks : {1, 2, 3}) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      for (const int64_t accumulate : {1, 2}) {
        const DdpCase what{.dtype = dtype, .accumulate = accumulate, .ranks = ranks};
        const auto results =
            on_threads<DdpResult>(ranks, [&](Group& group) { return train_by_ddp(group, what); });
        expect_exact(results, what);
        EXPECT_EQ(results.back().without_batch > 0, ranks > 1);
      }
    }
  }
}

TEST(Ddp, AGroupOfOneTakesAllBatchesOfAStepOneAfterTheOther) {
  const DdpCase what{.accumulate = 1, .ranks = 3};
  Group group = Group::self();
  expect_exact({train_by_ddp(group, what)}, what);
}

TEST(Ddp, TrainsParametersThatOnlySomeLossesUseWhenToldTo) {
  for (const int64_t accumulate : {1, 2}) {
    const DdpCase what{.accumulate = accumulate, .ranks = 2, .rare = true, .find_unused = true};
    expect_exact(on_threads<DdpResult>(2, [&](Group& group) { return train_by_ddp(group, what); }),
                 what);
  }
}

TEST(Ddp, FlagsAreAgreedInTheStepInWhichOneRankRaisesThem) {
  const auto ranks = on_threads<DdpResult>(
      3, [&](Group& group) { return train_by_ddp(group, DdpCase{.ranks = 3}); });
  for (const auto& rank : ranks) {
    for (size_t step = 0; step < rank.agreed.size(); ++step) {
      const AgreedFlags& agreed = rank.agreed[step];
      EXPECT_EQ(agreed.stop, step == 7);
      EXPECT_EQ(agreed.non_finite, step == 9);
      EXPECT_EQ(agreed.non_finite_rank, step == 9 ? 0 : -1);
      EXPECT_FALSE(agreed.save);
      EXPECT_EQ(agreed.samples, step % 3 == 2 ? 3 : 12);
      EXPECT_EQ(agreed.loss_sum, ranks[0].agreed[step].loss_sum);
      EXPECT_GT(agreed.loss_sum, 0);
    }
  }
}

TEST(Ddp, ALossThatIsNotFiniteLeavesTheOtherFlagsAlone) {
  const DdpCase what{};
  const auto all = on_threads<AgreedFlags>(2, [&](Group& group) {
    DdpNet net{what};
    Ddp ddp{group, net.parameters, net.buffers};
    const double factor = group.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    const at::Tensor loss = DdpData{what}.loss(net, group.rank()) * factor;
    const StepFlags flags{
        .samples = 4, .loss_sum = factor, .save = true, .non_finite = std::isnan(factor)};
    return ddp.backward(loss, 4, 8, true, flags);
  });
  for (const auto& agreed : all) {
    EXPECT_EQ(agreed.samples, 8);
    EXPECT_TRUE(std::isnan(agreed.loss_sum));
    EXPECT_TRUE(agreed.save);
    EXPECT_FALSE(agreed.stop);
    EXPECT_EQ(agreed.non_finite_rank, 1);
  }
}

TEST(Ddp, BeginsWithTheParametersAndBuffersOfRankZero) {
  run_threads(3, [](Group& group) {
    DdpNet net{DdpCase{}, group.rank()};
    net.parameters[1].second.set_requires_grad(false);
    Ddp ddp{group, net.parameters, net.buffers};
    EXPECT_TRUE(net.flat().equal(DdpNet{DdpCase{}}.flat()));
    EXPECT_EQ(net.buffers[0].second.item<int64_t>(), 0);
    net.buffers[0].second.fill_(group.rank() + 5);
    ddp.broadcast_buffers();
    EXPECT_EQ(net.buffers[0].second.item<int64_t>(), 5);
  });
}

TEST(Ddp, EveryRankNamesTheFirstParameterThatIsNotAlike) {
  using Change = std::function<void(DdpNet&)>;
  const auto make = [](at::IntArrayRef shape) { return at::zeros(shape, at::kDouble); };
  const std::vector<std::pair<Change, std::string>> changes{
      {[&](DdpNet& net) {
         net.parameters[2].second = make({1, 4}).set_requires_grad(true);
       },
       "rank 0 has parameter 'b.weight': float64[1, 16], requires a gradient, rank 1 has parameter "
       "'b.weight': float64[1, 4], requires a gradient."},
      {[&](DdpNet& net) { net.parameters[1].first = "other"; },
       "rank 0 has parameter 'a.bias': float64[16], requires a gradient, rank 1 has parameter "
       "'other': float64[16], requires a gradient."},
      {[&](DdpNet& net) { net.parameters[1].second.set_requires_grad(false); },
       "rank 1 has parameter 'a.bias': float64[16]."},
      {[&](DdpNet& net) { net.buffers[1].second = net.buffers[1].second.to(at::kFloat); },
       "rank 0 has buffer 'mean': float64[3], rank 1 has buffer 'mean': float32[3]."},
      {[&](DdpNet& net) { net.buffers.pop_back(); },
       "rank 0 has buffer 'mean': float64[3], rank 1 has no more."},
      {[&](DdpNet& net) {
         net.parameters[0].second = make({8, 16}).t().set_requires_grad(true);
       },
       "rank 1 has parameter 'a.weight': float64[16, 8] of strides [1, 16], requires a gradient."},
  };
  for (const auto& [change, message] : changes) {
    const auto errors = errors_on_threads(3, ErrorKind::usage, [&](Group& group) {
      DdpNet net{DdpCase{}};
      if (group.rank() == 1) change(net);
      const Ddp ddp{group, net.parameters, net.buffers};
    });
    for (const auto& error : errors) EXPECT_NE(error.find(message), std::string::npos) << error;
    EXPECT_EQ(errors[1], errors[0]);
  }
}

TEST(Ddp, EveryRankNamesAParameterThatOneRanksLossLeavesOut) {
  // Of the first step's batches 0, 1, 2 only batch 0 uses the layer.
  const DdpCase what{.ranks = 3, .rare = true};
  const auto errors =
      errors_on_threads(3, ErrorKind::user, [&](Group& group) { train_by_ddp(group, what); });
  for (const auto& error : errors) {
    EXPECT_EQ(error.find("the loss does not depend on these parameters: on rank 1 'rare.weight'; "
                         "on rank 2 'rare.weight'. "),
              0U)
        << error;
  }
}

TEST(Ddp, AStepWithOtherSamplesThanAnnouncedIsAnErrorOnEveryRank) {
  const DdpCase what{};
  const auto errors = errors_on_threads(2, ErrorKind::mismatch, [&](Group& group) {
    DdpNet net{what};
    Ddp ddp{group, net.parameters, net.buffers};
    ddp.backward(DdpData{what}.loss(net, group.rank()), 4, 8, true,
                 {.samples = group.rank() == 0 ? 4 : 3});
  });
  for (const auto& error : errors) EXPECT_EQ(error.find("the ranks ran 7 samples"), 0U) << error;
}

TEST(Ddp, RefusesWhatIsNoLoss) {
  Group group = Group::self();
  DdpNet net{DdpCase{}};
  Ddp ddp{group, net.parameters, net.buffers};
  const at::Tensor loss = DdpData{DdpCase{}}.loss(net, 0);
  const StepFlags flags{.samples = 4};
  EXPECT_THROW(ddp.backward({}, 4, 4, true, flags), Error);
  EXPECT_THROW(ddp.backward(loss.detach(), 4, 4, true, flags), Error);
  EXPECT_THROW(ddp.backward(at::cat({loss.view({1}), loss.view({1})}), 4, 4, true, flags), Error);
  EXPECT_THROW(ddp.backward(loss, 0, 4, true, flags), Error);
  EXPECT_THROW(ddp.backward(loss, 5, 4, true, flags), Error);
  EXPECT_EQ(ddp.backward(loss, 4, 4, true, flags).samples, 4);
  NamedTensors frozen{{"w", at::zeros({2})}};
  EXPECT_THROW((Ddp{group, frozen, {}}), Error);
}

TEST(Ddp, AParameterWithTwoNamesCountsOnce) {
  const auto gradients = on_threads<at::Tensor>(2, [](Group& group) {
    at::Tensor w = at::full({2}, 3.0, at::kDouble).set_requires_grad(true);
    Ddp ddp{group, {{"w", w}, {"same", w}}, {}};
    ddp.backward((w * w).sum(), 1, 2, true, {.samples = 1});
    return w.grad();
  });
  for (const auto& gradient : gradients) {
    EXPECT_TRUE(gradient.equal(at::full({2}, 6.0, at::kDouble)));
  }
}

}  // namespace
}  // namespace muster::test
