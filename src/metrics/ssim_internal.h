#pragma once

#include <muster/metrics/image_quality.h>

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// The weights of a window along one side; they sum to 1.
std::vector<double> ssim_window(const StructuralSimilarityIndexMeasureOptions& options);

/// The sum of a channel's local SSIM over all its pixels, row by row. Both pictures have rows of
/// `width`, and both sides exceed half a window.
double ssim_sum(std::span<const double> one, std::span<const double> other, size_t width,
                std::span<const double> window,
                const StructuralSimilarityIndexMeasureOptions& options);

}  // namespace muster
