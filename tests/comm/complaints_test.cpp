// Complaints about gathers: docs/complaints.md has the list.

#include "tests/comm/deadline.h"

#include <muster/base/error.h>
#include <muster/comm/gather.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {
namespace {

using std::chrono::seconds;

TEST(Complaints, I25AGatherKeepsEveryRanksOwnShapeAndType) {
  const Deadline deadline{seconds{20}, "a gather of different shapes"};
  // Shapes and types of the ranks; also of other numbers of dimensions, and of nothing.
  const std::vector<std::pair<std::vector<int64_t>, at::ScalarType>> kinds{
      {{3, 4, 7}, at::kFloat}, {{5, 2, 3}, at::kDouble}, {{0, 9}, at::kHalf}, {{}, at::kLong}};
  for (int ranks = 1; ranks <= 4; ++ranks) {
    run_threads(ranks, [&](Group& group) {
      const auto tensor = [&](size_t rank) {
        return at::full(kinds[rank].first, static_cast<int64_t>(rank) + 1,
                        at::TensorOptions{kinds[rank].second});
      };
      const auto all = gather(group, tensor(static_cast<size_t>(group.rank())));
      ASSERT_EQ(all.size(), static_cast<size_t>(ranks));
      for (size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(all[rank].scalar_type(), kinds[rank].second);
        EXPECT_EQ(all[rank].sizes().vec(), kinds[rank].first);
        EXPECT_TRUE(at::equal(all[rank], tensor(rank)));
      }
      group.finish();
    });
  }
}

TEST(Complaints, I25AReductionOfDifferentCountsOrTypesIsAnErrorOnEveryRankAndNoGarbage) {
  const Deadline deadline{seconds{20}, "a reduction of different counts"};
  for (const bool types : {false, true}) {
    std::atomic<int> errors{0};
    const auto body = [&](Group& group) {
      try {
        if (types && group.rank() == 2) {
          group.all_reduce(std::vector<int64_t>{1}, ReduceOp::sum);
        } else {
          const std::vector<double> mine(group.rank() == 2 && !types ? 2 : 1, 1.0);
          group.all_reduce(mine, ReduceOp::sum);
        }
      } catch (const Error& error) {
        errors += error.kind() == ErrorKind::mismatch ? 1 : 0;
        throw;
      }
    };
    EXPECT_THROW(run_threads(3, body), Error);
    EXPECT_EQ(errors.load(), 3);
  }
}

struct Caption {
  std::string name{};
  std::vector<std::string> words{};
  std::optional<int64_t> place{};
};

TEST(Complaints, I26TextsAndStructsOfThemAreGatheredAsTensorsAre) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    run_threads(ranks, [&](Group& group) {
      const auto text = [](int rank) {
        return std::string(static_cast<size_t>(rank), 'x') + std::string{"\0\xc3\xa4", 3};
      };
      const auto captions =
          gather(group, Caption{text(group.rank()),
                                std::vector<std::string>(static_cast<size_t>(group.rank()), "word"),
                                group.rank() == 1 ? std::optional<int64_t>{7} : std::nullopt});
      const auto texts = gather(group, text(group.rank()));
      const auto lists = gather(group, std::vector<std::string>{text(group.rank()), ""});
      ASSERT_EQ(captions.size(), static_cast<size_t>(ranks));
      ASSERT_EQ(texts.size(), captions.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const auto& caption = captions[static_cast<size_t>(rank)];
        EXPECT_EQ(caption.name, text(rank));
        EXPECT_EQ(caption.words.size(), static_cast<size_t>(rank));
        EXPECT_EQ(caption.place.has_value(), rank == 1);
        EXPECT_EQ(texts[static_cast<size_t>(rank)], text(rank));
        EXPECT_EQ(lists.at(static_cast<size_t>(rank)), (std::vector<std::string>{text(rank), ""}));
      }
      group.finish();
    });
  }
}

}  // namespace
}  // namespace muster::test
