#pragma once

#include "result.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

/// What the command was given.
struct MattingInputs {
  std::filesystem::path prediction{};             ///< a file or a folder
  std::filesystem::path truth{};                  ///< the same
  std::optional<std::filesystem::path> trimap{};  ///< the same
  bool skip_missing = false;                      ///< a missing prediction is a warning only
};

/// The files of one image.
struct MattingSample {
  std::string stem{};  ///< relative path without the last extension
  std::filesystem::path prediction{};
  std::filesystem::path truth{};
  std::optional<std::filesystem::path> trimap{};

  /// The top sub-folder, "" at the root.
  [[nodiscard]] std::string dataset() const;
  /// What follows it.
  [[nodiscard]] std::string name() const;
};

struct MatchedFiles {
  std::vector<MattingSample> samples{};  ///< in path order: by the bytes of the stem
  std::vector<Problem> problems{};
};

/// Finds what belongs together. Folders are searched to any depth; names that begin with a dot and
/// files that are no pictures by extension (png, jpg, jpeg, jpe, jfif in any case) are passed over.
/// Symbolic links are followed, but not in circles. Two pictures for one stem, a truth without
/// prediction and a folder that cannot be read are problems; what is left is matched.
///
/// Error of kind `usage` when some are files and others folders.
MatchedFiles match_files(const MattingInputs& inputs);

}  // namespace muster::app
