#include "work.h"

#include "image.h"
#include "thumbnails.h"

#include <muster/base/check.h>
#include <muster/base/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <new>
#include <utility>

namespace muster::app {

namespace {

class Work {
 public:
  Work(const std::vector<MattingSample>& samples, const std::vector<int64_t>& indices,
       const WorkOptions& options)
      : samples_{samples},
        indices_{indices},
        options_{options},
        gate_{options.memory.of_rank},
        worst_{options.most_thumbnails} {}

  /// One thread's part: images until there are none left.
  void run() {
    MattingWorkspace workspace;
    for (size_t at = next_++; at < indices_.size(); at = next_++) {
      compute(indices_[at], workspace);
      ++done_;
    }
  }

  [[nodiscard]] int64_t done() const { return done_; }

  WorkResult take_result() {
    result_.thumbnails = worst_.take();
    return std::move(result_);
  }

 private:
  void compute(int64_t index, MattingWorkspace& workspace) {
    const MattingSample& sample = samples_[static_cast<size_t>(index)];
    try {
      const ImagePlan plan = plan_image(sample, gate_);
      if (plan.bytes > gate_.capacity()) {
        const std::lock_guard lock{mutex_};
        result_.too_large.push_back(index);
        return;
      }
      const MemoryGate::Pass pass{gate_, plan.bytes};
      if (plan.bytes > options_.memory.kept_by_thread) {
        MattingWorkspace for_this_one;
        compute(index, plan, for_this_one);
      } else {
        compute(index, plan, workspace);
      }
    } catch (const Error& error) {
      add_problem(sample, error.what());
    } catch (const std::bad_alloc&) {
      add_problem(sample, sample.prediction.native() + ": there is not enough memory for it");
    } catch (const std::exception& error) {
      add_problem(sample, sample.prediction.native() + ": " + error.what());
    }
  }

  void compute(int64_t index, const ImagePlan& plan, MattingWorkspace& workspace) {
    const MattingSample& sample = samples_[static_cast<size_t>(index)];
    const Mattes mattes = load_mattes(sample);
    ImageRow row = compute_errors(sample, mattes, plan, {.profile = options_.profile}, workspace);
    row.index = index;
    const double bad = badness(row, options_.has_trimaps);
    if (worst_.wants(bad, index)) {
      worst_.put(bad, index, make_thumbnails(mattes));
    }
    if (row.unknown && row.unknown->n == 0) {
      add_problem(sample,
                  format("{}: no pixel of this trimap is unknown (85 to 169 of 255)",
                         sample.trimap->native()),
                  Problem::Kind::warning);
    }
    const std::lock_guard lock{mutex_};
    result_.rows.push_back(row);
  }

  void add_problem(const MattingSample& sample, const std::string& text,
                   Problem::Kind kind = Problem::Kind::error) {
    const std::lock_guard lock{mutex_};
    result_.problems.push_back({.place = sample.stem, .kind = kind, .text = text});
  }

  const std::vector<MattingSample>& samples_;
  const std::vector<int64_t>& indices_;
  const WorkOptions& options_;
  MemoryGate gate_;
  WorstThumbnails worst_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::mutex mutex_;
  WorkResult result_;
};

}  // namespace

WorkResult compute_images(const std::vector<MattingSample>& samples,
                          const std::vector<int64_t>& indices, const WorkOptions& options,
                          const std::function<void(int64_t done)>& on_progress) {
  Work work{samples, indices, options};
  if (!indices.empty()) {
    ThreadPool pool{options.threads};
    std::vector<std::future<void>> running;
    running.reserve(static_cast<size_t>(options.threads));
    for (int i = 0; i < options.threads; ++i) {
      running.push_back(pool.submit([&work] { work.run(); }));
    }
    for (auto& part : running) {
      while (part.wait_for(std::chrono::milliseconds{50}) == std::future_status::timeout) {
        on_progress(work.done());
      }
    }
    for (auto& part : running) {
      part.get();
    }
  }
  on_progress(work.done());
  return work.take_result();
}

}  // namespace muster::app
