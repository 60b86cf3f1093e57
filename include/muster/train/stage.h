#pragma once

#include <string_view>

namespace muster {

/// What a Trainer is doing. Names of stages are those of results.json.
enum class Stage { fit, validate, test, predict };

/// "fit", "validate", "test" or "predict".
std::string_view to_string(Stage stage);

}  // namespace muster
