// usage: predictions_program COUNT RUN_DIR    Predicts COUNT texts of 1 KB on the ranks of the job;
// rank 0 checks that each comes once and in order. Each rank writes its peak of memory (bytes) to
// RUN_DIR/peak-RANK.

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/train/trainer.h>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

namespace {

struct Number {
  int64_t index = 0;
};
struct Text {
  std::string text{};
};

std::string text_of(int64_t index) {
  std::string text = std::to_string(index);
  text.resize(1000, static_cast<char>('a' + index % 26));
  return text;
}

class Predictor : public muster::Module<Number, Text> {
 public:
  std::vector<Text> predict_step(const Batch& batch, muster::Step& /*step*/) override {
    std::vector<Text> out;
    for (const int64_t index : batch.indices()) out.push_back({text_of(index)});
    return out;
  }
};

void run(int64_t count, const std::string& run_dir) {
  muster::Trainer trainer{{.run_dir = run_dir, .logger = false, .enable_progress_bar = false}};
  Predictor predictor;
  const muster::Loader<Number> loader{
      muster::make_dataset(count, [](int64_t index, muster::Rng&) { return Number{index}; }),
      {.batch_size = 500}};
  int64_t next = 0;
  trainer.predict_each(predictor, loader, [&](const muster::PredictionKey& key, const Text& out) {
    muster::check(key.index == next && out.text == text_of(next), "prediction {} came for {}",
                  key.index, next);
    ++next;
  });
  const int rank = trainer.group().rank();
  muster::check(next == (rank == 0 ? count : 0), "rank {} was given {} of {}", rank, next, count);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  muster::write_file_atomically(std::filesystem::path{run_dir} / muster::format("peak-{}", rank),
                                std::to_string(usage.ru_maxrss * 1024));
  trainer.group().finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(std::strtoll(argv[1], nullptr, 10), argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "predictions_program: %s\n", error.what());
    return 1;
  }
}
