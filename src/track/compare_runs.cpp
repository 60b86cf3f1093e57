#include "src/track/compare_runs_internal.h"
#include "src/track/json_members_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/track/compare_runs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>

namespace muster {

namespace {

namespace fs = std::filesystem;

/// The files below tables/ and predictions/, relative to the run folder.
std::set<std::string> compared_files(const fs::path& run_dir) {
  std::set<std::string> files;
  for (const char* part : {"tables", "predictions"}) {
    if (!fs::is_directory(run_dir / part)) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator{run_dir / part}) {
      if (entry.is_regular_file()) {
        files.insert(fs::relative(entry.path(), run_dir).generic_string());
      }
    }
  }
  return files;
}

/// "predictions/000012-a.png (sample 12)" where the name begins with an index.
std::string file_label(const std::string& name) {
  const std::string file = fs::path{name}.filename().string();
  int64_t index = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), index);
  const bool has_index =
      error == std::errc{} && end != file.data() + file.size() && *end == '-' && index >= 0;
  return has_index ? format("{} (sample {})", name, index) : name;
}

/// Where the bytes of two files part; nothing when they are equal.
std::optional<uint64_t> differing_byte(const fs::path& first, const fs::path& second) {
  std::ifstream one{first, std::ios::binary};
  std::ifstream two{second, std::ios::binary};
  check(one.is_open() && two.is_open(), ErrorKind::data, "cannot read {}",
        (one.is_open() ? second : first).string());
  std::vector<char> left(size_t{1} << 18U);
  std::vector<char> right(left.size());
  const auto read = [&](std::ifstream& file, std::vector<char>& block) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    check(!file.bad(), ErrorKind::data, "cannot read {}",
          (&file == &one ? first : second).string());
    return static_cast<size_t>(file.gcount());
  };
  for (uint64_t at = 0;;) {
    const size_t in_left = read(one, left);
    const size_t in_right = read(two, right);
    const size_t both = std::min(in_left, in_right);
    const auto equal = static_cast<size_t>(
        std::mismatch(left.data(), left.data() + both, right.data()).first - left.data());
    if (equal < both || in_left != in_right) {
      return at + equal;
    }
    if (both == 0) {
      return std::nullopt;
    }
    at += both;
  }
}

std::string size_text(const fs::path& file) { return format("{} bytes", fs::file_size(file)); }

class FileComparison {
 public:
  FileComparison(const fs::path& first, const fs::path& second) : first_{first}, second_{second} {}

  void compare(RunComparison& out) {
    const auto left = compared_files(first_);
    const auto right = compared_files(second_);
    out.contents.files = 1 + static_cast<int64_t>(left.size());
    auto all = left;
    all.insert(right.begin(), right.end());
    for (const auto& name : all) {
      if (!left.contains(name) || !right.contains(name)) {
        others_.add(file_label(name),
                    left.contains(name) ? size_text(first_ / name) : track::missing,
                    right.contains(name) ? size_text(second_ / name) : track::missing);
      } else if (const auto at = differing_byte(first_ / name, second_ / name)) {
        compare_content(name, *at, out);
      }
    }
    others_.take_into(out.differences);
  }

 private:
  void compare_content(const std::string& name, uint64_t at, RunComparison& out) {
    if (name.starts_with("tables/") && name.ends_with(".csv")) {
      out.differences.push_back(
          track::compare_tables(name, read_file(first_ / name), read_file(second_ / name)));
    } else {
      others_.add(format("{} from byte {} on", file_label(name), at), size_text(first_ / name),
                  size_text(second_ / name));
    }
  }

  const fs::path& first_;
  const fs::path& second_;
  track::FirstDifference others_;
};

std::string_view raw_or_missing(const std::vector<track::JsonMember>& members,
                                std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [name](const auto& member) { return member.name == name; });
  return found == members.end() ? track::missing : found->raw;
}

}  // namespace

namespace track {

RunDifference differing_line(const std::string& name, std::string_view first,
                             std::string_view second) {
  const auto same = std::mismatch(first.begin(), first.end(), second.begin(), second.end()).first;
  const auto at = static_cast<size_t>(same - first.begin());
  const auto line = 1 + std::count(first.begin(), same, '\n');
  const auto line_of = [at](std::string_view text) -> std::string {
    const size_t before = text.substr(0, at).rfind('\n');
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    return begin == text.size() ? "the end of the file"
                                : std::string{text.substr(begin, text.find('\n', begin) - begin)};
  };
  return {.what = format("{}, line {}", name, line),
          .first = line_of(first),
          .second = line_of(second)};
}

}  // namespace track

RunComparison compare_runs(const fs::path& first, const fs::path& second) {
  RunComparison comparison;
  track::compare_results(first, second, comparison);
  FileComparison{first, second}.compare(comparison);
  return comparison;
}

std::vector<RunDifference> compare_environments(const fs::path& first, const fs::path& second) {
  const std::array<std::string, 2> texts{read_file(first / "environment.json"),
                                         read_file(second / "environment.json")};
  const auto left = track::json_members(texts[0], (first / "environment.json").string());
  const auto right = track::json_members(texts[1], (second / "environment.json").string());
  std::vector<std::string> names;
  for (const auto* members : {&left, &right}) {
    for (const auto& member : *members) {
      if (std::find(names.begin(), names.end(), member.name) == names.end()) {
        names.push_back(member.name);
      }
    }
  }
  std::vector<RunDifference> differences;
  for (const auto& name : names) {
    const auto one = raw_or_missing(left, name);
    const auto two = raw_or_missing(right, name);
    if (name != "world_size" && one != two) {
      differences.push_back({.what = name, .first = std::string{one}, .second = std::string{two}});
    }
  }
  return differences;
}

}  // namespace muster
