#pragma once

#include <muster/track/compare_runs.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::track {

/// Keeps the first difference of a kind and counts the others.
class FirstDifference {
 public:
  void add(std::string what, std::string first, std::string second) {
    if (any()) {
      ++found_.front().more;
    } else {
      found_.push_back({std::move(what), std::move(first), std::move(second)});
    }
  }

  [[nodiscard]] bool any() const { return !found_.empty(); }

  void take_into(std::vector<RunDifference>& differences) {
    for (auto& difference : std::exchange(found_, {})) {
      differences.push_back(std::move(difference));
    }
  }

 private:
  /// At most one; GCC 12 takes an optional's strings for uninitialised ones under sanitizers.
  std::vector<RunDifference> found_{};
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
