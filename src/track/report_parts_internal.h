#pragma once

#include "src/track/report_data_internal.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::track {

// The parts of the report as HTML. Every text that comes from a run passes through escape_html, and
// stands in <bdi> where it could turn the direction of its neighbours.

/// `value` for reading: four digits, whole numbers whole.
std::string readable(double value);

/// A text of the run, escaped and isolated.
std::string shown_text(std::string_view text);

/// The final metrics: a matrix PREFIX by REST where several share their rests (val/unknown/sad,
/// trimap/unknown/sad), the others one by one; then all of them by full name with every digit.
std::string metrics_part(const std::vector<ReportMetric>& metrics);

/// The rows of `table`, one of the stage's, the worst first.
std::string table_part(const ReportStage& stage, const ReportTable& table);

/// Each curve over the steps, as inline SVG.
std::string curves_part(const std::vector<ReportCurve>& curves);

/// How many bytes of pictures still go into the page, and how many pictures did not.
struct PictureBudget {
  uint64_t bytes_left = uint64_t{30} << 20U;
  int64_t left_out = 0;
};

/// The images of `stage` by sample, each with its caption; pictures are read from
/// `media`/SHA256.png.
std::string gallery_part(const ReportStage& stage, const std::filesystem::path& media,
                         PictureBudget& budget);

/// The anchor of a sample's images.
std::string sample_anchor(const std::string& stage, std::string_view index);

std::string_view report_style();
std::string_view report_script();

}  // namespace muster::track
