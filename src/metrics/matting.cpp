#include <muster/base/check.h>
#include <muster/base/env.h>
#include <muster/base/thread_pool.h>
#include <muster/metrics/matting.h>

#include "src/metrics/host_picture_internal.h"

#include <chrono>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace muster {

namespace {

/// One sample on the host, as `copy_alpha` and `copy_trimap` made it.
struct Sample {
  int64_t index = 0;
  SampleName name{};
  at::Tensor alpha;
  at::Tensor truth;
  at::Tensor trimap;

  [[nodiscard]] int64_t bytes() const {
    return static_cast<int64_t>(alpha.nbytes() + truth.nbytes()) +
           (trimap.defined() ? static_cast<int64_t>(trimap.nbytes()) : 0);
  }
};

/// What one thread needs to compute a sample.
struct Memory {
  MattingWorkspace workspace;
  std::vector<float> floats[2];
  std::vector<double> doubles[2];
  std::vector<uint8_t> bytes[2];
  std::vector<uint8_t> trimap;
};

/// Memories that are not in use; as many come about as there are threads.
class MemoryShelf {
 public:
  std::unique_ptr<Memory> take() {
    const std::lock_guard lock{mutex_};
    if (free_.empty()) {
      return std::make_unique<Memory>();
    }
    auto memory = std::move(free_.back());
    free_.pop_back();
    return memory;
  }

  void put_back(std::unique_ptr<Memory> memory) {
    const std::lock_guard lock{mutex_};
    free_.push_back(std::move(memory));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> free_;
};

template <typename T>
MattingErrors errors_in(const Sample& sample, const MattingMetricOptions& options,
                        std::vector<T> (&memory)[2], std::vector<uint8_t>& trimap_memory,
                        MattingWorkspace& workspace) {
  const auto alpha = alpha_picture(sample.alpha, options.alpha_range, "the prediction", memory[0]);
  const auto truth = alpha_picture(sample.truth, options.truth_range, "the truth", memory[1]);
  std::optional<Picture8> trimap;
  if (sample.trimap.defined()) {
    trimap = trimap_picture(sample.trimap, options.trimap_coding, trimap_memory);
  }
  return matting_errors(alpha, truth, trimap, {.profile = options.profile}, workspace);
}

MattingErrors errors_of(const Sample& sample, const MattingMetricOptions& options, Memory& memory) {
  const auto alpha = sample.alpha.scalar_type();
  const auto truth = sample.truth.scalar_type();
  if (alpha == at::kByte && truth == at::kByte && options.alpha_range == AlphaRange::byte &&
      options.truth_range == AlphaRange::byte) {
    return errors_in(sample, options, memory.bytes, memory.trimap, memory.workspace);
  }
  if (alpha == at::kDouble || truth == at::kDouble) {
    return errors_in(sample, options, memory.doubles, memory.trimap, memory.workspace);
  }
  return errors_in(sample, options, memory.floats, memory.trimap, memory.workspace);
}

void add_cells(std::vector<Cell>& cells, const std::optional<RegionErrors>& region) {
  const size_t end = cells.size() + 5;
  if (region) {
    cells.emplace_back(static_cast<double>(region->n));
  }
  if (region && region->values) {
    const auto& values = *region->values;
    for (const double value : {values.sad, values.mse, values.grad, values.conn}) {
      cells.emplace_back(value);
    }
  }
  cells.resize(end);
}

std::vector<Cell> row_of(const Sample& sample, const MattingMetricOptions& options,
                         MemoryShelf& shelf) {
  auto memory = shelf.take();
  MattingErrors errors;
  try {
    errors = errors_of(sample, options, *memory);
  } catch (const Error& error) {
    throw Error{error.kind(),
                format("sample {} ({}/{}): {}", sample.index, sample.name.dataset_name,
                       sample.name.image_name, error.what()),
                error.where()};
  }
  shelf.put_back(std::move(memory));
  std::vector<Cell> cells{sample.name.dataset_name, sample.name.image_name};
  add_cells(cells, errors.unknown);
  add_cells(cells, errors.all);
  return cells;
}

std::vector<TableColumn> columns() {
  using Kind = TableColumn::Kind;
  std::vector<TableColumn> columns{{"dataset_name", Kind::text}, {"image_name", Kind::text}};
  for (const std::string region : {"unknown", "all"}) {
    columns.push_back({region + "/n", Kind::number});
    for (const char* error : {"sad", "mse", "grad", "conn"}) {
      columns.push_back({region + "/" + error, Kind::mean});
    }
  }
  return columns;
}

int ranks_on_host() {
  const auto here = env_integer("LOCAL_WORLD_SIZE", 1);
  const auto ranks = here ? here : env_integer("WORLD_SIZE", 1);
  return static_cast<int>(ranks.value_or(1));
}

}  // namespace

/// The samples that are being computed, in the order of `update`.
struct MattingMetric::Work {
  struct Pending {
    int64_t index = 0;
    int64_t bytes = 0;
    std::future<std::vector<Cell>> cells;

    [[nodiscard]] bool is_done() const {
      return cells.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    }
  };

  /// Takes the first sample's row, waiting for it; throws its error.
  void finish_first(TableMetric& rows) {
    Pending first = std::move(pending.front());
    pending.pop_front();
    bytes -= first.bytes;
    rows.update(first.index, first.cells.get());
  }

  void submit(Sample sample) {
    if (!options.pool) {
      options.pool = std::make_shared<ThreadPool>(cores_for_rank(ranks_on_host()));
    }
    Pending next{.index = sample.index, .bytes = sample.bytes(), .cells = {}};
    next.cells = options.pool->submit([sample = std::move(sample), profile = options_without_pool(),
                                       shelf = shelf] { return row_of(sample, profile, *shelf); });
    bytes += next.bytes;
    pending.push_back(std::move(next));
  }

  /// A task that held the pool could be the one to destroy it, from one of its threads.
  [[nodiscard]] MattingMetricOptions options_without_pool() const {
    auto copy = options;
    copy.pool = nullptr;
    return copy;
  }

  MattingMetricOptions options{};
  std::shared_ptr<MemoryShelf> shelf = std::make_shared<MemoryShelf>();
  std::deque<Pending> pending{};
  int64_t bytes = 0;
};

MattingMetric::MattingMetric(MattingMetricOptions options)
    : rows_{columns()}, work_{std::make_unique<Work>()} {
  work_->options = std::move(options);
}

MattingMetric::~MattingMetric() = default;

void MattingMetric::update(int64_t index, const at::Tensor& alpha, const at::Tensor& truth,
                           const at::Tensor& trimap, SampleName name) {
  while (!work_->pending.empty() && work_->pending.front().is_done()) {
    work_->finish_first(rows_);
  }
  const auto what = [&](const char* tensor) {
    return format("sample {} ({}/{}): {}", index, name.dataset_name, name.image_name, tensor);
  };
  Sample sample{
      .index = index,
      .name = {},
      .alpha = copy_alpha(alpha, what("the prediction")),
      .truth = copy_alpha(truth, what("the truth")),
      .trimap = trimap.defined() ? copy_trimap(trimap, what("the trimap")) : at::Tensor{}};
  sample.name = std::move(name);
  while (!work_->pending.empty() &&
         work_->bytes + sample.bytes() > work_->options.most_bytes_waiting) {
    work_->finish_first(rows_);
  }
  work_->submit(std::move(sample));
}

void MattingMetric::finish_all() {
  while (!work_->pending.empty()) {
    work_->finish_first(rows_);
  }
}

std::string MattingMetric::state() {
  finish_all();
  return rows_.state();
}

void MattingMetric::merge(std::string_view state) { rows_.merge(state); }

MetricResult MattingMetric::compute() {
  finish_all();
  return rows_.compute();
}

void MattingMetric::reset() {
  work_->pending.clear();
  work_->bytes = 0;
  rows_.reset();
}

}  // namespace muster
