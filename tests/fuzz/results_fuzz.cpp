// results.json, tables and metrics.csv as somebody may have left them: a stage is put into the file
// beside the others' bytes, and the report is made of it, or an error says what is wrong.
//
// Input: results.json up to a byte 1, then a CSV text that stands for the table and metrics.csv.

#include <muster/base/files.h>
#include <muster/track/report.h>
#include <muster/track/results.h>

#include "src/track/json_members_internal.h"
#include "support/temp_folder.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <fstream>

namespace muster::fuzz {
namespace {

using track::JsonMember;

constexpr std::string_view markup = "<zz9";  // of the seeds; no page of ours has it

void write(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream{path, std::ios::binary} << text;
}

const JsonMember* find(const std::vector<JsonMember>& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

void check_replacing(const std::filesystem::path& folder, const std::string& text,
                     const std::vector<JsonMember>& before) {
  replace_stage(folder, {.stage = "test", .samples = 3, .metrics = {{"sad", 0.5}}}, {});
  const std::string now = read_file(folder / "results.json");
  const auto after = track::json_members(now, "results.json");
  require(find(after, "test") != nullptr, "the stage is missing");
  for (const std::string_view stage : {"fit", "validate", "predict"}) {
    const auto* one = find(before, stage);
    const auto* two = find(after, stage);
    require((one == nullptr) == (two == nullptr), "another stage is lost, or new");
    require(one == nullptr || one->raw == two->raw, "the bytes of another stage have changed");
  }
  check_results(folder);
  require(text.size() >= before.size(), "members out of nothing");
}

}  // namespace

void check_input(std::string_view input) {
  static const test::TempFolder folder;
  const size_t end = std::min(input.find('\1'), input.size());
  const std::string text{input.substr(0, end)};
  const auto csv = input.substr(std::min(end + 1, input.size()));
  write(folder / "results.json", text);
  write(folder / "tables" / "fit-images.csv", csv);
  write(folder / "metrics.csv", csv);

  const auto report = [&] {
    write_report(folder.path());
    return true;
  };
  if (unless_refused(ErrorKind::data, report)) {
    require(text.find('\0') == std::string::npos, "a zero byte is no JSON");
    require(read_file(folder / "report.html").find(markup) == std::string::npos,
            "the report holds markup of its data");
  }
  const auto members =
      unless_refused(ErrorKind::data, [&] { return track::json_members(text, "results.json"); });
  if (members) {
    for (const auto& [name, raw] : *members) {
      const std::string line = track::json_on_one_line(raw);
      require(line.find_first_of("\r\n\t") == std::string::npos, "one line is more than one");
    }
    check_replacing(folder.path(), text, *members);
    unless_refused(ErrorKind::data, report);
  }
}

std::vector<std::string> seeds() {
  return {
      R"({"fit": {"metrics": {"loss": 0.5, "<zz9": null, "x": "NaN"}, "epochs": 2, "steps": 10, "images": [
  {"key": "k<zz9>", "step": 1, "index": 0, "caption": "c\"'&<zz9", "width": 3, "height": 4, "sha256": "aa"}]},
 "predict": {"samples": 3, "images": []}})"
      "\1index,name,sad\n0,<zz9,1.5\n1,\"a,\"\"b\",NaN\n2,'=x,\n",
      R"({"test": {"metrics": {}, "samples": 1e300}, "more": [1, {"a": [true, false, null]}]})"
      "\1step,epoch,loss,<zz9\n1,0,0.5,1\n2,0,0.25,inf\nnan,1e99,-0,1\n",
      "{}",
      R"({"fit": 1, "fit": {"metrics": [1, 2]}, "validate": {"images": {"a": 1}}})",
  };
}

}  // namespace muster::fuzz
