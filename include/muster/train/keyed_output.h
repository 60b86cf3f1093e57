#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// What predict_step gave for a sample, as bytes, with what puts it in order.
struct KeyedOutput {
  int64_t loader = 0;
  int64_t index = 0;  ///< global index of the sample
  std::string bytes{};
};

}  // namespace muster
