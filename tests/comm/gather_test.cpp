#include <muster/comm/gather.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace muster {
namespace {

struct Sample {
  at::Tensor image{};
  std::string name{};
  std::optional<double> score{};
  std::map<std::string, int64_t> sizes{};
};

/// Ragged on purpose: rank r has an image of (r + 1) x 2.
Sample sample_of(int rank) {
  Sample sample;
  sample.image = at::full({rank + 1, 2}, rank + 0.25);
  sample.name = std::string(static_cast<size_t>(rank), 'n');
  if (rank == 1) sample.score = 0.5;
  sample.sizes["height"] = rank + 1;
  return sample;
}

void expect_sample(const Sample& sample, int rank) {
  const Sample expected = sample_of(rank);
  EXPECT_TRUE(identical(to_value(sample), to_value(expected))) << to_json(to_value(sample));
}

TEST(Gather, GivesStructsWithTensorsOfDifferentShapes) {
  run_threads(3, [](Group& group) {
    const auto all = gather(group, sample_of(group.rank()));
    ASSERT_EQ(all.size(), 3U);
    for (int rank = 0; rank < 3; ++rank) expect_sample(all[static_cast<size_t>(rank)], rank);
    group.finish();
  });
}

TEST(Gather, OfAGroupOfOneGivesACopy) {
  Group group = Group::self();
  const Sample mine = sample_of(0);
  const auto all = gather(group, mine);
  ASSERT_EQ(all.size(), 1U);
  expect_sample(all[0], 0);
  EXPECT_NE(all[0].image.const_data_ptr(), mine.image.const_data_ptr());
}

TEST(Gather, HoldsThePresentRanksOnlyInRankOrder) {
  run_threads(3, [](Group& group) {
    group.begin_section("predict", 0);
    for (int64_t k = group.rank(); k < 5; k += 3) {
      group.move_to(0, k / 3);
      const auto all = gather(group, std::vector<std::string>(static_cast<size_t>(k), "b"));
      ASSERT_EQ(all.size(), k < 3 ? 3U : 2U);
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].size(), static_cast<size_t>(k / 3 * 3) + i);
      }
    }
    group.finish();
  });
}

TEST(Gather, TakesNumbersTuplesAndTensorsThatAreNotContiguous) {
  run_threads(2, [](Group& group) {
    EXPECT_EQ(gather(group, int64_t{group.rank()}), (std::vector<int64_t>{0, 1}));
    using Pair = std::pair<bool, double>;
    EXPECT_EQ(gather(group, Pair{group.rank() == 1, -0.5}),
              (std::vector<Pair>{{false, -0.5}, {true, -0.5}}));
    const auto turned = at::arange(6).reshape({2, 3}).t();
    for (const auto& tensor : gather(group, turned)) EXPECT_TRUE(tensor.equal(turned));
    group.finish();
  });
}

TEST(Broadcast, GivesWhatTheRootGaveOfAnyType) {
  run_threads(3, [](Group& group) {
    using Named = std::pair<std::string, std::vector<double>>;
    const Named mine{"rank " + std::to_string(group.rank()),
                     std::vector<double>(static_cast<size_t>(group.rank()), 0.5)};
    EXPECT_EQ(broadcast(group, mine, 2), (Named{"rank 2", {0.5, 0.5}}));
    EXPECT_EQ(broadcast(group, mine).first, "rank 0");
    group.finish();
  });
}

}  // namespace
}  // namespace muster
