// metrics.csv as a killed run or anybody else left it: a logger goes on with it, keeps every whole
// row and cuts a torn one.
//
// Input: the file up to a byte 1, then names of values, each up to a byte 1.

#include <muster/base/files.h>
#include <muster/base/text.h>
#include <muster/track/csv_logger.h>

#include "src/track/csv_text_internal.h"
#include "support/temp_folder.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>

namespace muster::fuzz {
namespace {

using track::CsvRows;
using Rows = std::vector<std::vector<std::string>>;

CsvRows parsed(std::string_view text) { return track::parse_csv(text, SIZE_MAX); }

void check_parsing(std::string_view text) {
  const CsvRows all = parsed(text);
  require(all.rows.size() == all.ends.size(), "rows without ends");
  require(std::is_sorted(all.ends.begin(), all.ends.end()), "ends that do not rise");
  if (!all.rows.empty()) {
    require(all.ends.back() <= text.size(), "an end beyond the text");
    require(parsed(text.substr(0, all.ends.back())).rows == all.rows, "the torn tail matters");
    require(track::parse_csv(text, 1).rows.front() == all.rows.front(), "the first row differs");
  }
}

/// Names that can be logged, each once.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\1'), text.size());
    const std::string name = valid_utf8(text.substr(0, end));
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (!name.empty() && !is_known && name.find('\0') == std::string::npos) {
      names.push_back(name);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

/// Each row of before, with empty cells behind where there are new columns.
void check_kept(const Rows& before, const Rows& after, size_t added) {
  require(after.size() >= before.size(), "rows are lost");
  for (size_t i = 1; i < before.size(); ++i) {
    auto expected = before[i];
    expected.resize(expected.size() + added);
    require(after[i] == expected, "a row has changed");
  }
  for (size_t i = 0; !before.empty() && i < before.front().size(); ++i) {
    require(valid_utf8(after.front()[i]) == valid_utf8(before.front()[i]), "a name has changed");
  }
}

void check_going_on(const std::string& text, const std::vector<std::string>& names) {
  static const test::TempFolder folder;
  const auto path = folder / "metrics.csv";
  { std::ofstream{path, std::ios::binary} << text; }
  const auto logger =
      unless_refused(ErrorKind::data, [&] { return make_csv_logger({.run_dir = folder.path()}); });
  if (!logger) {
    require(read_file(path) == text, "a refused file has changed");
    return;
  }
  const Rows before = parsed(read_file_if_there(path).value_or("")).rows;
  require(before == parsed(text).rows, "opening has changed rows");
  MetricsRow row{.step = 3, .epoch = 1};
  for (const auto& name : names) {
    row.values.emplace_back(name, 0.5);
    (*logger)->log_metrics(row);
  }
  (*logger)->finish(0);
  const Rows after = parsed(read_file_if_there(path).value_or("")).rows;
  if (names.empty()) {
    require(after == before, "nothing was logged and rows have changed");
    return;
  }
  check_kept(before, after, after.front().size() - (before.empty() ? 0 : before.front().size()));
  require(after.size() == std::max<size_t>(before.size(), 1) + names.size(), "rows are missing");
  for (const auto& name : names) {
    const auto& header = after.front();
    const auto found = std::find(header.begin(), header.end(), name);
    require(found != header.end(), "a name is missing");
    require(after.back().at(static_cast<size_t>(found - header.begin())) == "0.5",
            "a value is missing");
  }
}

}  // namespace

void check_input(std::string_view input) {
  const size_t end = std::min(input.find('\1'), input.size());
  const auto text = input.substr(0, end);
  check_parsing(text);
  check_going_on(std::string{text}, names_in(input.substr(end)));
}

std::vector<std::string> seeds() {
  return {
      "step,epoch,loss\n1,0,0.5\n2,0,0.25\n\1loss\1new",
      "step,epoch,\"a,b\",\"c\"\"d\",\"e\nf\"\n1,0,1,2,3\n2,0,\1a,b\1\"",
      "step,epoch\r\n1,0\r\n\1x",
      "step,epoch,los",
      "step,epoch,\"x\n1,2,3\n\1y",
      "a,b\n1,2\n\1y",
      std::string{"step,epoch,x\n1,0,2\n\0\0\0\0", 23},
      "\1\xc3\xa9\1\xff\1=1+1",
  };
}

}  // namespace muster::fuzz
