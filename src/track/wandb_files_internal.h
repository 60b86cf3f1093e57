#pragma once

#include "src/track/wandb_records_internal.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::track {

/// W&B's config.yaml: `KEY:` and below it `value: JSON`, which is YAML.
std::string wandb_config_yaml(const std::vector<WandbItem>& config);

/// W&B's wandb-summary.json: one object.
std::string wandb_summary_json(const std::vector<WandbItem>& summary);

/// Where the picture of `key` lies below files/: media/images/KEY_STEP_HASH.png with 20 digits of
/// the hash. Slashes of the key are folders; "." and ".." as a part become "_" and "__", leading
/// slashes go.
std::string wandb_image_path(std::string_view key, int64_t row_step, std::string_view sha256);

}  // namespace muster::track
