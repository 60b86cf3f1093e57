// The manifest of a checkpoint: what is read is written as the same again.

#include "src/io/checkpoint_manifest_internal.h"
#include "tests/fuzz/target.h"

#include <algorithm>

namespace muster::fuzz {
namespace {

bool same(const CheckpointManifest& one, const CheckpointManifest& two) {
  const auto same_file = [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.size == right.second.size &&
           left.second.sha256 == right.second.sha256;
  };
  return one.global_step == two.global_step && one.epoch == two.epoch &&
         one.files.size() == two.files.size() &&
         std::equal(one.files.begin(), one.files.end(), two.files.begin(), same_file);
}

}  // namespace

void check_input(std::string_view input) {
  const auto manifest =
      unless_refused(ErrorKind::data, [&] { return parse_manifest(input, "manifest.json"); });
  if (!manifest) {
    return;
  }
  require(input.find('\0') == std::string_view::npos, "a zero byte is no JSON");
  for (const auto& [name, file] : manifest->files) {
    require(is_file_name(name) && file.sha256.size() == 64, "a file that cannot be");
  }
  require(manifest->global_step >= 0 && manifest->epoch >= 0, "a count below 0");
  require(same(parse_manifest(manifest_json(*manifest), "again"), *manifest),
          "what was written reads otherwise");
}

std::vector<std::string> seeds() {
  const std::string digest(64, 'a');
  return {
      manifest_json({.global_step = 12, .epoch = 3}),
      manifest_json({.global_step = 1,
                     .epoch = 0,
                     .files = {{"weights.safetensors", {.size = 123, .sha256 = digest}},
                               {"state \xc3\xa9\n.safetensors", {.size = 0, .sha256 = digest}}}}),
      R"({"global_step": 1, "epoch": 2, "files": {"../x": {"size": 1e3, "sha256": null}}, "more": [1, {}]})"};
}

}  // namespace muster::fuzz
