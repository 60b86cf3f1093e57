#include "guided_filter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>

namespace matting {

namespace {

/// Sums over the window around each pixel, cut at the borders, by two running sums. HxW, double.
at::Tensor window_sums(const at::Tensor& values, int64_t radius) {
  at::Tensor sums = values;
  for (const int64_t dim : {0, 1}) {
    const int64_t size = sums.size(dim);
    const int64_t reach = std::min(radius, size - 1);
    // One zero before, and the total repeated behind, so that both ends of a window can be looked
    // up.
    const auto running = sums.cumsum(dim);
    const std::array<int64_t, 4> before = dim == 0 ? std::array<int64_t, 4>{0, 0, reach + 1, 0}
                                                   : std::array<int64_t, 4>{reach + 1, 0, 0, 0};
    const auto padded = at::constant_pad_nd(running, before);
    const auto total = running.slice(dim, size - 1, size);
    const auto upper = at::cat({running.slice(dim, reach, size),
                                total.expand(dim == 0 ? at::IntArrayRef{reach, sums.size(1)}
                                                      : at::IntArrayRef{sums.size(0), reach})},
                               dim);
    sums = upper - padded.slice(dim, 0, size);
  }
  return sums;
}

}  // namespace

at::Tensor guided_filter(const at::Tensor& image, const at::Tensor& input,
                         const GuidedFilterOptions& options) {
  const auto guide = image.to(at::kDouble);
  const auto target = input.to(at::kDouble);
  const auto count = window_sums(at::ones(target.sizes(), target.options()), options.radius);
  const auto mean = [&](const at::Tensor& values) {
    return window_sums(values, options.radius) / count;
  };

  std::array<at::Tensor, 3> means;
  std::array<at::Tensor, 3> cross;  // covariance of each colour with the input
  const auto mean_target = mean(target);
  for (int64_t c = 0; c < 3; ++c) {
    means[c] = mean(guide[c]);
    cross[c] = mean(guide[c] * target) - means[c] * mean_target;
  }
  // The colours' covariance matrix, symmetric: rr rg rb gg gb bb.
  const auto covariance = [&](int64_t i, int64_t j) {
    return mean(guide[i] * guide[j]) - means[i] * means[j];
  };
  const auto rr = covariance(0, 0) + options.eps;
  const auto rg = covariance(0, 1);
  const auto rb = covariance(0, 2);
  const auto gg = covariance(1, 1) + options.eps;
  const auto gb = covariance(1, 2);
  const auto bb = covariance(2, 2) + options.eps;
  // Its inverse by cofactors.
  const auto i_rr = gg * bb - gb * gb;
  const auto i_rg = gb * rb - rg * bb;
  const auto i_rb = rg * gb - gg * rb;
  const auto i_gg = rr * bb - rb * rb;
  const auto i_gb = rb * rg - rr * gb;
  const auto i_bb = rr * gg - rg * rg;
  const auto determinant = rr * i_rr + rg * i_rg + rb * i_rb;
  const std::array<at::Tensor, 3> slope{
      (i_rr * cross[0] + i_rg * cross[1] + i_rb * cross[2]) / determinant,
      (i_rg * cross[0] + i_gg * cross[1] + i_gb * cross[2]) / determinant,
      (i_rb * cross[0] + i_gb * cross[1] + i_bb * cross[2]) / determinant};
  auto offset = mean_target;
  for (int64_t c = 0; c < 3; ++c) {
    offset = offset - slope[c] * means[c];
  }
  auto output = mean(offset);
  for (int64_t c = 0; c < 3; ++c) {
    output = output + mean(slope[c]) * guide[c];
  }
  return output.to(at::kFloat);
}

}  // namespace matting
