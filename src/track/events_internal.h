#pragma once

#include <muster/base/record.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::track {

// TensorBoard's Event, serialized. `wall_time` is Unix time in seconds.

/// The first event of a file.
std::string version_event(double wall_time);

/// The start of a session: what files of the same folder hold from `step` on is not shown.
std::string session_start_event(double wall_time, int64_t step);

/// All scalars of one row, as float32.
std::string scalars_event(double wall_time, int64_t step,
                          std::span<const std::pair<std::string, double>> values);

/// Pictures of one size as samples of one tag; the captions stand in the tag's description.
std::string images_event(double wall_time, int64_t step, std::string_view tag,
                         std::span<const ImageRecord> images, std::span<const std::string> pngs);

std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text);

}  // namespace muster::track
