#include "fake_training.h"

#include "src/train/progress_bar_internal.h"
#include "tests/support/texts.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <thread>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;

/// What the bar writes to a file while `events` happen.
template <typename Events>
std::string text_of(const Events& events) {
  std::FILE* out = std::tmpfile();
  events(*make_progress_bar(out));
  std::string text(static_cast<size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
  std::fclose(out);
  return text;
}

/// What it writes to a terminal of so many columns, at most a few kilobytes.
template <typename Events>
std::string terminal_text_of(unsigned short columns, const Events& events) {
  int screen = -1;
  int program = -1;
  winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&screen, &program, nullptr, nullptr, &size) != 0) {
    ADD_FAILURE() << "no pseudo terminal";
    return "";
  }
  std::FILE* out = fdopen(program, "w");
  events(*make_progress_bar(out));
  std::fputs("END", out);
  std::fflush(out);
  std::string text;
  std::array<char, 4096> part{};
  while (!text.ends_with("END")) {
    const ssize_t got = read(screen, part.data(), part.size());
    if (got <= 0) {
      break;
    }
    text.append(part.data(), static_cast<size_t>(got));
  }
  std::fclose(out);
  close(screen);
  return text.substr(0, text.size() - 3);
}

const FakeRun::Values of_validation{{"val/loss", 0.02}, {"val/none", std::nullopt}};
const FakeRun::Values of_training{{"train/loss", 0.0123}, {"a", 1}, {"b", 2}, {"c", 3}};

TEST(ProgressBar, LeavesALineOfEachTrainingEpoch) {
  const std::string text = text_of([](Callback& bar) {
    FakeTraining training;
    FakeRun run{training, bar};
    run.start();
    run.epoch(of_validation, of_training);
    run.epoch({}, of_training);
    run.end();
  });
  const std::string speed = "8 samples in [0-9.]+ s \\([0-9.]+ samples/s\\)";
  EXPECT_TRUE(test::matches(text, "epoch 0: " + speed +
                                      ", train/loss 0.0123, a 1, b 2, val/loss 0.02\n" +
                                      "epoch 1: " + speed + ", train/loss 0.0123, a 1, b 2\n"));
}

TEST(ProgressBar, ShowsTheLatestValuesOfStepsWhereAnEpochHasNone) {
  const std::string text = text_of([](Callback& bar) {
    FakeTraining training;
    FakeRun run{training, bar};
    run.start();
    run.epoch(of_validation);
    training.metrics_["train/step"] = 0.25;
    run.epoch({});
  });
  EXPECT_TRUE(
      test::matches(text, "epoch 0: [^,]*, val/loss 0.02\nepoch 1: [^,]*, train/step 0.25\n"));
}

TEST(ProgressBar, LeavesALineOfAStageOnItsOwn) {
  const std::string text = text_of([](Callback& bar) {
    const Progress progress{.stage = Stage::test, .batches = 1, .done = 1};
    bar.on_epoch_start(progress);
    bar.on_batch_end(progress);
    bar.on_epoch_end(progress, {.samples = 3, .metrics = of_validation});
  });
  EXPECT_TRUE(test::matches(text, "test: 3 samples in [0-9.]+ s \\([0-9.]+ samples/s\\)\n"));
}

TEST(ProgressBar, ShowsAValidationInPlaceOfTheTrainingLine) {
  const std::string text = terminal_text_of(100, [](Callback& bar) {
    FakeTraining training;
    FakeRun run{training, bar};
    run.values_ = {{"loss", 0.5}};
    run.start();
    run.epoch_start();
    run.steps(2);
    run.validation_start();
    bar.on_batch_end(run.progress(Stage::validate));
    run.validation_end(of_validation);
    run.steps(2);
    run.epoch_end(of_training);
  });
  const auto drawn = [](const std::string& name, const std::string& percent) {
    return "(\r" + name + " +" + percent +
           " % [^\r]* [1-4]/4 \\[[0-9:]+<[0-9:]+, [0-9.]+ batches/s, loss=0.5\\]\x1b\\[K)+";
  };
  EXPECT_TRUE(test::matches(text, drawn("epoch 0", "(25|50)") + drawn("validate", "100") +
                                      drawn("epoch 0", "(25|50)") + drawn("epoch 0", "(75|100)") +
                                      "\r\x1b\\[Kepoch 0: 8 samples [^\r]*, val/loss 0.02\r\n"));
}

TEST(ProgressBar, KeepsWithinTheWidthOfTheTerminal) {
  const std::string text = terminal_text_of(70, [](Callback& bar) {
    FakeTraining training;
    FakeRun run{training, bar};
    run.values_ = {{"loss", 0.5}, {"another/value", 1.25}, {"more", 3}};
    run.start();
    run.epoch_start();
    run.steps(1);
  });
  EXPECT_TRUE(test::has(text, "loss=0.5]"));
  EXPECT_FALSE(test::has(text, "another"));
}

TEST(ProgressBar, CountsTheSpeedOfAResumedEpochFromWhereItWentOn) {
  const std::string text = terminal_text_of(100, [](Callback& bar) {
    Progress progress{.stage = Stage::fit, .batches = 1000000, .done = 999900};
    bar.on_epoch_start(progress);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    progress.done += 1;
    bar.on_batch_end(progress);
  });
  EXPECT_TRUE(test::matches(text,
                            "\repoch 0 100 % [^\r]* \\[0:00<[0-9:]+, [1-5]?[0-9]\\.[0-9] "
                            "batches/s\\]\x1b\\[K"));
}

}  // namespace
}  // namespace muster
