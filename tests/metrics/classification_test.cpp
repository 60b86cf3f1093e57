#include <muster/metrics/classification.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace muster {
namespace {

using test::integers;
using test::message_of;
using test::only;
using test::tensor;

ClassificationOptions classes(int64_t count, Average average = Average::micro) {
  return {.num_classes = count, .average = average};
}

TEST(Accuracy, OfLabelsIsTheShareThatIsRight) {
  Accuracy metric{classes(3)};
  metric.update(integers({0, 1, 2, 2}), integers({0, 1, 1, 2}));
  metric.update(integers({0}), integers({1}));
  EXPECT_EQ(only(metric.compute()), 0.6);
}

TEST(Accuracy, TakesTheBestScoreOfEachElementWhateverItsType) {
  for (const auto dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    Accuracy metric{classes(3)};
    metric.update(tensor({1, 5, -2, 3, 2, 3, 0, 0, 9, 8, 7, 6}, {2, 3, 2}, dtype),
                  integers({1, 0, 1, 0}, {2, 2}));
    EXPECT_EQ(only(metric.compute()), 0.5);  // said: 2, 0 and 1, 1
  }
}

TEST(Accuracy, OfTopKFindsTheTrueClassAmongTheBest) {
  const auto scores = tensor({0.5, 0.3, 0.2, 0.5, 0.3, 0.2, 0.4, 0.4, 0.2}, {3, 3});
  Accuracy best_two{{.num_classes = 3, .top_k = 2}};
  best_two.update(scores, integers({1, 2, 1}));
  EXPECT_EQ(only(best_two.compute()), 2.0 / 3.0);
  Accuracy best{classes(3)};
  best.update(scores, integers({1, 2, 1}));
  EXPECT_EQ(only(best.compute()), 0.0);  // of equal scores the lower class is the better
  EXPECT_NE(message_of(ErrorKind::usage, [&] { best_two.update(integers({1}), integers({1})); })
                .find("top_k"),
            std::string::npos);
}

TEST(Accuracy, OfScoresThatAreNanIsThatOfTheFirstClasses) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t top_k : {1, 2}) {
    Accuracy metric{{.num_classes = 3, .average = Average::none, .top_k = top_k}};
    metric.update(tensor(std::vector<double>(9, nan), {3, 3}), integers({0, 1, 2}));
    const auto values = metric.compute().values;
    EXPECT_EQ(values.at(0).second, 1.0);
    EXPECT_EQ(values.at(1).second, top_k == 2 ? 1.0 : 0.0);
    EXPECT_EQ(values.at(2).second, 0.0);
  }
}

TEST(StatScores, TakeAnUpdateWithoutSamples) {
  for (const int64_t top_k : {1, 2}) {
    Accuracy metric{{.num_classes = 3, .top_k = top_k}};
    metric.update(tensor({}, {0, 3, 4}), integers({}, {0, 4}));
    EXPECT_EQ(metric.state(), "");
    EXPECT_FALSE(only(metric.compute()).has_value());
  }
}

TEST(Accuracy, MacroLeavesOutClassesThatNeverCome) {
  Accuracy metric{classes(4, Average::macro)};
  metric.update(integers({0, 0, 1, 2}), integers({0, 0, 0, 1}));
  // Class 0: 2 of 3; class 1: 0 of 1; class 2 was said, so it counts as 0; class 3 never came.
  EXPECT_DOUBLE_EQ(*only(metric.compute()), 2.0 / 9.0);
}

TEST(Accuracy, OfEachClassHasTheirNames) {
  auto options = classes(3, Average::none);
  options.class_names = {"cat", "dog", "eel"};
  Accuracy metric{options};
  EXPECT_FALSE(metric.compute().values.at(2).second.has_value());
  metric.update(integers({0, 1, 1}), integers({0, 0, 1}));
  const auto result = metric.compute();
  ASSERT_EQ(result.values.size(), 3U);
  EXPECT_EQ(result.values[0], (std::pair{std::string{"cat"}, std::optional{0.5}}));
  EXPECT_EQ(result.values[1], (std::pair{std::string{"dog"}, std::optional{1.0}}));
  EXPECT_EQ(result.values[2], (std::pair{std::string{"eel"}, std::optional{0.0}}));
}

TEST(StatScores, LeaveOutWhatIsToBeIgnored) {
  F1Score metric{{.task = Task::binary, .ignore_index = 255}};
  metric.update(integers({1, 1, 0, 7}), integers({1, 0, 1, 255}));
  EXPECT_EQ(only(metric.compute()), 0.5);
  EXPECT_EQ(metric.counts().at(0).tn, 0);
  F1Score nothing{{.task = Task::binary, .ignore_index = 255}};
  nothing.update(integers({1}), integers({255}));
  EXPECT_FALSE(only(nothing.compute()).has_value());
  EXPECT_EQ(nothing.state(), "");
}

TEST(StatScores, CompareProbabilitiesWithTheThresholdAndLogitsThroughASigmoid) {
  const auto count = [](ScoreKind kind, const std::vector<double>& scores) {
    Recall metric{{.task = Task::binary, .score_kind = kind}};
    metric.update(tensor(scores, {static_cast<int64_t>(scores.size())}),
                  integers(std::vector<int64_t>(scores.size(), 1)));
    return metric.counts().at(0).tp;
  };
  EXPECT_EQ(count(ScoreKind::detect, {0.5, 0.51, 0.2}), 1);
  EXPECT_EQ(count(ScoreKind::detect, {0.2, 0.51, -3.0}), 2);
  EXPECT_EQ(count(ScoreKind::logits, {0.5, 0.51, 0.2}), 3);
  EXPECT_EQ(count(ScoreKind::probabilities, {0.2, 0.51, -3.0}), 1);
}

TEST(PrecisionScore, OfLabelsCountsEachLabelApart) {
  PrecisionScore metric{{.task = Task::multilabel, .num_labels = 2, .average = Average::none}};
  metric.update(integers({1, 1, 1, 0}, {2, 2}), integers({1, 0, 0, 1}, {2, 2}));
  const auto values = metric.compute().values;
  EXPECT_EQ(values.at(0).second, 0.5);
  EXPECT_EQ(values.at(1).second, 0.0);
}

TEST(PrecisionScore, OfAClassThatWasNeverSaidIsWhatZeroDivisionSays) {
  PrecisionScore metric{{.num_classes = 3, .average = Average::none, .zero_division = 1.0}};
  metric.update(integers({0}), integers({1}));
  const auto values = metric.compute().values;
  EXPECT_EQ(values.at(0).second, 0.0);
  EXPECT_EQ(values.at(1).second, 1.0);
  EXPECT_EQ(values.at(2).second, 1.0);
}

TEST(StatScores, GiveTheSameBitsForAnySplit) {
  for (const auto average : {Average::micro, Average::macro, Average::weighted, Average::none}) {
    const auto results = test::results_of_splits(
        9, [&] { return F1Score{classes(5, average)}; },
        [](F1Score& metric, int64_t i) {
          metric.update(integers({i % 5, (i * 3) % 4, 2}), integers({i % 3, (i * 2) % 4, i % 2}));
        });
    EXPECT_EQ(results.size(), 1U);
  }
}

TEST(StatScores, OfRanksThatSawNothingAreThoseOfTheOthers) {
  std::vector<Recall> ranks(3, Recall{classes(2)});
  ranks[1].update(integers({1, 0}), integers({1, 1}));
  EXPECT_EQ(only(test::sync(ranks)), 0.5);
  ranks[0].reset();
  EXPECT_EQ(ranks[0].state(), "");
}

TEST(StatScores, SayWhatShapesTheyExpect) {
  Accuracy metric{classes(3)};
  const auto message = message_of(ErrorKind::usage, [&] {
    metric.update(tensor({1, 2, 3, 4}, {2, 2}), integers({0, 1}));
  });
  EXPECT_NE(message.find("[N, 3, ...]"), std::string::npos) << message;
  EXPECT_NE(message.find("float64[2, 2]"), std::string::npos) << message;
  message_of(ErrorKind::usage, [&] { metric.update(integers({0, 1}), integers({0})); });
  message_of(ErrorKind::usage, [&] { metric.update(integers({0}), tensor({0}, {1})); });
  message_of(ErrorKind::usage, [&] { metric.update(at::Tensor{}, integers({0})); });
  Accuracy labels{{.task = Task::multilabel, .num_labels = 2}};
  message_of(ErrorKind::usage, [&] { labels.update(integers({0, 1}), integers({0, 1})); });
  EXPECT_EQ(metric.state(), "");
}

TEST(StatScores, NameAClassThatIsOutOfRange) {
  Accuracy metric{classes(3)};
  const auto message = message_of(ErrorKind::data, [&] {
    metric.update(integers({0, 1}), integers({0, 255}));
  });
  EXPECT_NE(message.find("255"), std::string::npos) << message;
  EXPECT_NE(message.find("ignore_index"), std::string::npos) << message;
  message_of(ErrorKind::data, [&] { metric.update(integers({0, -1}), integers({0, 2})); });
  EXPECT_EQ(metric.state(), "");
}

TEST(StatScores, RefuseOptionsThatMakeNoSense) {
  message_of(ErrorKind::usage, [] { Accuracy{{}}; });
  message_of(ErrorKind::usage, [] { Accuracy{{.num_classes = 3, .top_k = 4}}; });
  message_of(ErrorKind::usage, [] { Accuracy{{.task = Task::multilabel}}; });
  message_of(ErrorKind::usage, [] { Accuracy{{.task = Task::binary, .threshold = 1.5}}; });
  message_of(ErrorKind::usage, [] { Accuracy{{.num_classes = 2, .class_names = {"one"}}}; });
  message_of(ErrorKind::usage, [] { Recall{{.num_classes = 2, .zero_division = 0.5}}; });
}

TEST(StatScores, RefuseAStateOfAnotherNumberOfClasses) {
  Accuracy three{classes(3)};
  three.update(integers({0}), integers({1}));
  Accuracy two{classes(2)};
  message_of(ErrorKind::data, [&] { two.merge(three.state()); });
  Accuracy four{classes(4)};
  message_of(ErrorKind::data, [&] { four.merge(three.state()); });
  EXPECT_EQ(four.state(), "");
}

}  // namespace
}  // namespace muster
