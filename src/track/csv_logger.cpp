#include "src/track/append_file_internal.h"
#include "src/track/csv_text_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>
#include <muster/track/csv_logger.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace muster {

namespace {

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) {
    line += line.empty() ? cell : "," + cell;
  }
  return line + "\n";
}

struct Position {
  size_t rows = 0;
  size_t columns = 0;  ///< 0 for what is no position
  std::string last{};
};

Position read_position(std::string_view text) {
  Position position;
  const char* end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, position.rows);
  if (rows.ec != std::errc{} || rows.ptr == end || *rows.ptr != ':') return {};
  const auto columns = std::from_chars(rows.ptr + 1, end, position.columns);
  if (columns.ec != std::errc{} || columns.ptr == end || *columns.ptr != ':') return {};
  position.last.assign(columns.ptr + 1, end);
  return position;
}

class CsvLogger final : public Logger {
 public:
  explicit CsvLogger(const CsvOptions& options) : path_{options.run_dir / "metrics.csv"} {
    make_folder(path_.parent_path());
    continue_existing();
  }

  void log_metrics(const MetricsRow& row) override {
    check(!finished_, "{} has been finished; nothing more can be logged", path_.string());
    if (row.values.empty()) {
      return;
    }
    const size_t columns_before = columns_.size();
    std::vector<std::string> cells{std::to_string(row.step), std::to_string(row.epoch)};
    for (const auto& [name, value] : row.values) {
      const size_t at = column_of(name);
      cells.resize(std::max(cells.size(), at + 1));
      cells[at] = shortest(value);
    }
    cells.resize(columns_.size());
    if (file_ && columns_.size() > columns_before) {
      widen(columns_.size() - columns_before);
    }
    if (!file_) {
      file_ = track::AppendFile::create(path_);
      file_->append(header() + line_of(cells));
    } else {
      file_->append(line_of(cells));
    }
    ++rows_;
    last_ = cells[0] + "," + cells[1];
  }

  /// "12:5:980,3": how many rows and columns, and step and epoch of the last row.
  [[nodiscard]] std::string position() const override {
    return std::to_string(rows_) + ":" + std::to_string(columns_.size()) + ":" + last_;
  }

  void go_on(std::string_view position, int64_t /*step*/) override {
    const auto [rows, columns, last] = read_position(position);
    if (!file_ || columns < 2 || rows > rows_ || columns > columns_.size()) {
      return;
    }
    auto parsed = track::parse_csv(read_file(path_), std::numeric_limits<size_t>::max());
    const auto& row = parsed.rows.at(rows);  // the header is the first
    if (rows > 0 && row.at(0) + "," + row.at(1) != last) {
      return;
    }
    file_.reset();
    columns_.resize(columns);
    if (rows == 0) {  // a file begins with its first row
      std::filesystem::remove(path_);
    } else {
      std::string text = header();
      for (size_t i = 1; i <= rows; ++i) {
        parsed.rows[i].resize(columns);
        text += line_of(parsed.rows[i]);
      }
      write_file_atomically(path_, text);
      file_ = track::AppendFile::open(path_);
    }
    note_last(parsed, rows);
  }

  void finish(int /*exit_code*/) override {
    if (file_) {
      file_->sync();
    }
    finished_ = true;
  }

 private:
  size_t column_of(const std::string& name) {
    check(!name.empty() && name.find('\0') == std::string::npos,
          "what is logged needs a name without zero bytes; found '{}'", name);
    const std::string clean = valid_utf8(name);
    const auto found = std::find(columns_.begin(), columns_.end(), clean);
    if (found == columns_.end()) {
      columns_.push_back(clean);
      return columns_.size() - 1;
    }
    return static_cast<size_t>(found - columns_.begin());
  }

  [[nodiscard]] std::string header() const {
    std::vector<std::string> names;
    std::transform(columns_.begin(), columns_.end(), std::back_inserter(names), track::csv_name);
    return line_of(names);
  }

  void continue_existing() {
    std::error_code unknown;
    const auto there = std::filesystem::symlink_status(path_, unknown);
    if (!std::filesystem::exists(there)) {
      return;
    }
    check(is_regular_file(there) || is_symlink(there), ErrorKind::output,
          "cannot write to {}: it is no regular file; remove it, or give another run folder",
          path_.string());
    file_ = track::AppendFile::open(path_);  // which refuses a link
    const std::string text = read_file(path_);
    const auto parsed = track::parse_csv(text, std::numeric_limits<size_t>::max());
    if (parsed.rows.empty()) {
      file_.reset();
      std::filesystem::remove(path_);  // nothing but a torn header
      return;
    }
    columns_ = parsed.rows.front();
    for (auto& name : columns_) {
      name = valid_utf8(name);  // as it is looked up, and written when the file is widened
    }
    check(columns_.size() >= 2 && columns_[0] == "step" && columns_[1] == "epoch", ErrorKind::data,
          "{} does not begin with the columns step and epoch; move it away to start a new one",
          path_.string());
    if (parsed.ends.back() < text.size()) {
      file_->cut(parsed.ends.back());
    }
    note_last(parsed, parsed.rows.size() - 1);
  }

  void note_last(const track::CsvRows& parsed, size_t rows) {
    rows_ = rows;
    const auto& last = parsed.rows.at(rows);
    last_ = rows > 0 && last.size() >= 2 ? last[0] + "," + last[1] : "";
  }

  /// Gives every row that is there `added` empty cells more, under the new header.
  void widen(size_t added) {
    const std::string old = read_file(path_);
    const auto ends = track::parse_csv(old, std::numeric_limits<size_t>::max()).ends;
    std::string text = header();
    for (size_t i = 1; i < ends.size(); ++i) {
      text.append(old, ends[i - 1], ends[i] - ends[i - 1] - 1);
      text.append(added, ',');
      text += '\n';
    }
    write_file_atomically(path_, text);
    file_ = track::AppendFile::open(path_);
  }

  std::filesystem::path path_;
  std::vector<std::string> columns_{"step", "epoch"};
  std::optional<track::AppendFile> file_;
  size_t rows_ = 0;
  std::string last_{};  ///< step and epoch of the last row
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Logger> make_csv_logger(const CsvOptions& options) {
  return std::make_unique<CsvLogger>(options);
}

}  // namespace muster
