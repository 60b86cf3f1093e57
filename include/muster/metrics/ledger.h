#pragma once

#include <muster/base/exact_sum.h>
#include <muster/base/record.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// How the values logged under one name become one (Lightning's reduce_fx). `mean` weighs each
/// value by its number of samples; the others do not weigh.
enum class ReduceFx { mean, sum, min, max };

/// "mean", "sum", "min" or "max".
std::string_view to_string(ReduceFx reduce);

/// When in an epoch something was logged, as a single process would have ordered it: hooks before
/// the loaders, the batches of each loader by their global number, hooks after them; then the order
/// of calls. A batch is one rank's, but every rank runs the hooks around the loaders and counts its
/// own calls there: between ranks only what was logged can order those.
struct Moment {
  static constexpr int64_t before = -1;
  static constexpr int64_t after = INT64_MAX;

  int64_t loader = before;  ///< `before` and `after` for the hooks around the loaders
  int64_t batch = before;   ///< global number of the batch
  int64_t call = 0;         ///< counts the calls of one hook, or of one batch

  [[nodiscard]] bool in_batch() const { return batch != before && batch != after; }

  friend auto operator<=>(const Moment&, const Moment&) = default;
};

/// An image on its way into the run: its record and what puts it in order.
struct LoggedImage {
  ImageRecord record{};
  int64_t loader = 0;  ///< which loader's sample `record.index` is
  Moment moment{};
  int64_t place = 0;  ///< among the images of one call
};

/// A text on its way into the run.
struct LoggedText {
  std::string key{};
  std::string text{};
  Moment moment{};
};

/// What an epoch logged. Each rank fills one; `state` travels, and `merge` of every rank's state
/// gives the same ledger on every rank, whatever their number: sums are exact, everything else is
/// keyed by sample. Not thread-safe; no member communicates.
class Ledger {
 public:
  /// Adds `value`, which stands for `weight` samples, to `name`. Error of kind `usage` when the
  /// name was logged with another reduction before.
  void log(std::string_view name, double value, int64_t weight, ReduceFx reduce,
           const Moment& moment);
  /// Adds a row of a per-sample table. Error of kind `usage` when its columns differ from those
  /// before, are not unique, or when the sample has a row already.
  void add_row(std::string_view table, const std::vector<std::string>& columns, Table::Row row);
  void add_image(LoggedImage image);
  void add_text(LoggedText text);
  /// Gives each image the file that `file_of` says.
  void relocate_images(const std::function<std::string(const ImageRecord&)>& file_of);
  /// Counts samples, each once.
  void add_samples(int64_t count) { samples_ += count; }

  [[nodiscard]] int64_t samples() const { return samples_; }

  /// Everything as bytes. A mean takes about 70 bytes and its name, however many samples went in.
  [[nodiscard]] std::string state() const;
  /// Adds the ledger of another rank (or this rank's own, to an empty one). A row that two ranks
  /// gave alike is one; Error of kind `usage` when they differ.
  void merge(std::string_view state);

  /// Final values in the order of the hooks and batches that named them first (by name within a
  /// hook around the loaders), without those of tables.
  [[nodiscard]] std::vector<std::pair<std::string, std::optional<double>>> values() const;
  /// By (step, loader, sample, hook, call, place in the call). What several ranks logged alike in a
  /// hook around the loaders is one.
  [[nodiscard]] std::vector<LoggedImage> images() const;
  /// By moment, and by key and text within a hook around the loaders; alike ones there are one.
  [[nodiscard]] std::vector<LoggedText> texts() const;
  /// By name; rows rise by index.
  [[nodiscard]] std::vector<Table> tables() const;

 private:
  struct Entry {
    ReduceFx reduce = ReduceFx::mean;
    ExactSum sum{};        // mean, sum
    int64_t count = 0;     // total weight of a mean, else the number of values
    double extreme = 0.0;  // min, max; meaningful when count > 0
    Moment first{};
  };
  struct Rows {
    std::vector<std::string> columns{};
    std::map<int64_t, std::vector<Cell>> by_index{};
  };
  void combine(Entry& entry, const Entry& other) const;
  Rows& rows_of(std::string_view table, const std::vector<std::string>& columns);

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Rows, std::less<>> tables_;
  std::vector<LoggedImage> images_;
  std::vector<LoggedText> texts_;
  int64_t samples_ = 0;
};

}  // namespace muster
