#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/dataset.h>

#include <string>

namespace {

using muster::Rng;

TEST(Dataset, HoldsSamplesInMemory) {
  const auto words = muster::make_dataset(std::vector<std::string>{"zero", "one"});
  Rng rng{0};
  EXPECT_EQ(words->size(), 2);
  EXPECT_EQ(words->get(1, rng), "one");
  EXPECT_THROW((void)words->get(2, rng), std::out_of_range);
}

TEST(Dataset, IsMadeFromAFunction) {
  const auto squares = muster::make_dataset(4, [](int64_t index, Rng& rng) {
    return static_cast<double>(index * index) + rng.uniform();
  });
  Rng rng{1};
  Rng same{1};
  EXPECT_EQ(squares->size(), 4);
  EXPECT_EQ(squares->get(3, rng), 9 + same.uniform());
}

TEST(Dataset, ShowsSomeSamplesOfAnother) {
  const auto words = muster::make_dataset(std::vector<std::string>{"zero", "one", "two"});
  const muster::Subset<std::string> some{words, {2, 0, 2}};
  Rng rng{0};
  EXPECT_EQ(some.size(), 3);
  EXPECT_EQ(some.get(0, rng), "two");
  EXPECT_EQ(some.get(1, rng), "zero");
}

TEST(Dataset, RefusesASubsetOfWhatIsNotThere) {
  const auto words = muster::make_dataset(std::vector<std::string>{"zero"});
  EXPECT_THROW((muster::Subset<std::string>{words, {1}}), muster::Error);
  EXPECT_THROW((muster::Subset<std::string>{words, {-1}}), muster::Error);
  EXPECT_THROW((muster::Subset<std::string>{nullptr, {}}), muster::Error);
}

}  // namespace
