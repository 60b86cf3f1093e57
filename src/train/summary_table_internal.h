#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// A module, as far as a summary shows it.
struct SummaryPart {
  std::string name{};  ///< within its parent
  std::string type{};
  bool training = true;
  std::vector<at::Tensor> parameters{};  ///< its own
  std::vector<SummaryPart> parts{};
};

/// The table that `summarize` gives of the module `root`.
std::string summary_table(const SummaryPart& root, int64_t max_depth);

}  // namespace muster
