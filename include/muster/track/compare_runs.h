#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster {

/// Something that two run folders do not have alike. Its texts stem from files of theirs: a program
/// that shows them makes them printable.
struct RunDifference {
  std::string what{};    ///< the place, such as "metric val/sad of validate"
  std::string first{};   ///< what the first folder has there
  std::string second{};  ///< what the second has
  int64_t more = 0;      ///< further differences of this kind, or in this table
};

/// What a run folder holds of that which is compared.
struct RunContents {
  int64_t files = 0;    ///< results.json, tables and predictions
  int64_t metrics = 0;  ///< of all stages, as are the next two
  int64_t samples = 0;
  int64_t images = 0;
};

struct RunComparison {
  RunContents contents{};  ///< of the first folder
  /// Empty when all is equal. The first of each kind: stages, samples, metrics, images, then one
  /// for each table, then the first of other files.
  std::vector<RunDifference> differences{};
};

/// Compares results.json and every file below tables/ and predictions/ byte for byte; images by the
/// SHA-256 that results.json gives. Error of kind `data` when a folder has no results.json, or one
/// that is none.
RunComparison compare_runs(const std::filesystem::path& first, const std::filesystem::path& second);

/// The entries in which environment.json of the two folders differ, less the number of ranks. Error
/// of kind `data` when a folder has no such file, or one that is no JSON.
std::vector<RunDifference> compare_environments(const std::filesystem::path& first,
                                                const std::filesystem::path& second);

}  // namespace muster
