#pragma once

#include "result.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::app {

/// As the interface of `muster matting` fixes it. Ends with a newline.
std::string matting_json(const MattingReport& report);

/// A row an image: dataset, name, width, height, unknown/n, unknown/sad, ..., all/conn. A cell
/// without value is empty. Ends with a newline.
std::string matting_csv(const MattingReport& report);

/// One page that refers to nothing outside itself and trusts no text it shows.
std::string matting_html(const MattingReport& report);

/// For people: means by data set and over all, then the worst images. Ends with a newline.
std::string matting_table(const MattingReport& report);

/// Writes the whole file by a temporary name and rename; what is no regular file, such as
/// /dev/stdout, is written to. Error of kind `output` or `io`.
void write_output(const std::filesystem::path& path, std::string_view content);

}  // namespace muster::app
