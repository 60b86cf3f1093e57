// Texts of samples and users on their way into file names, HTML and CSV.

#include <muster/base/text.h>
#include <muster/io/prediction_file.h>

#include "src/track/csv_text_internal.h"
#include "src/train/file_pattern_internal.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <array>

namespace muster::fuzz {
namespace {

bool is_plain_name(std::string_view name, std::string_view also) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || also.find(c) != std::string_view::npos;
  });
}

void check_names(std::string_view text) {
  for (const size_t most : {40, 180}) {
    const std::string name = safe_file_name(text, most);
    require(name.size() <= most && is_plain_name(name, "%"), "a name that is not safe");
  }
  const std::string name = prediction_file_name(12, text);
  require(name.size() <= 200 && is_plain_name(name, "%") && name.ends_with(".png"),
          "a prediction's name that is not safe");
}

void check_pattern(std::string_view text) {
  for (const bool insert_names : {false, true}) {
    const auto pattern = unless_refused(ErrorKind::usage, [&] {
      return FilePattern{text, insert_names};
    });
    if (pattern) {
      const auto metric = [](std::string_view) { return 0.25; };
      const std::string name = pattern->name(INT64_MAX, -1, metric);
      require(is_plain_name(name, "="), "a checkpoint's name that is not safe");
      require(name.size() <= 1000 * (text.size() + 1), "a checkpoint's name without bound");
    }
  }
}

void check_escapes(std::string_view text) {
  const std::string clean = valid_utf8(text);
  require(valid_utf8(clean) == clean, "valid UTF-8 is not");
  require(escape_html(text).find_first_of("<>\"'") == std::string::npos, "HTML gets through");
  require(base64(text).size() == (text.size() + 2) / 3 * 4, "base64 of another length");
  const auto cells = track::parse_csv(csv_text(text) + "," + track::csv_name(text) + "\n", 2).rows;
  require(cells.size() == 1 && cells[0].size() == 2, "a cell is more than one");
  require(cells[0][1] == clean, "a name reads otherwise");
  const bool guarded = cells[0][0] != text;
  require(!guarded || cells[0][0] == "'" + std::string{text}, "a cell reads otherwise");
  require(cells[0][0].empty() ||
              std::string_view{"=+-@"}.find(cells[0][0].front()) == std::string_view::npos,
          "a formula gets through");
}

}  // namespace

void check_input(std::string_view input) {
  check_names(input);
  check_pattern(input);
  check_escapes(input);
  const std::array<std::string, 4> known{"model.lr", "trainer.max_epochs", "x", ""};
  const std::string closest = closest_name(input, known);
  require(closest.empty() || std::find(known.begin(), known.end(), closest) != known.end(),
          "a name that is none of them");
}

std::vector<std::string> seeds() {
  return {"{epoch}-{val/loss:.3f}",
          "{step:08d} {epoch:>4}",
          "../../etc/passwd\n",
          ".hidden",
          "=cmd|'/c calc'!A1",
          "<script>&\"'",
          "a,\"b\"\r\n",
          "\xf0\x9f\x98\x80\xed\xa0\x80",
          "modle.lr",
          std::string(300, 'x')};
}

}  // namespace muster::fuzz
