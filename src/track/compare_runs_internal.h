#pragma once

#include <muster/track/compare_runs.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::track {

/// Keeps the first difference of a kind and counts the others.
class FirstDifference {
 public:
  void add(std::string what, std::string first, std::string second) {
    if (found_) {
      ++found_->more;
    } else {
      found_ = RunDifference{std::move(what), std::move(first), std::move(second)};
    }
  }

  [[nodiscard]] bool any() const { return found_.has_value(); }

  void take_into(std::vector<RunDifference>& differences) {
    if (found_) {
      differences.push_back(*std::exchange(found_, std::nullopt));
    }
  }

 private:
  std::optional<RunDifference> found_;
};

/// What stands for a thing that a folder has, and for one that it lacks.
inline constexpr const char* there = "there";
inline constexpr const char* missing = "missing";

/// Compares results.json of both folders; the first's contents go to `out` as well.
void compare_results(const std::filesystem::path& first, const std::filesystem::path& second,
                     RunComparison& out);

/// The first difference of two tables whose texts are not equal.
RunDifference compare_tables(const std::string& name, std::string_view first,
                             std::string_view second);

/// The first line in which two texts differ that are not equal.
RunDifference differing_line(const std::string& name, std::string_view first,
                             std::string_view second);

}  // namespace muster::track
