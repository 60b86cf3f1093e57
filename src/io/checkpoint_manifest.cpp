#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/json_writer.h>

#include <nlohmann/json.hpp>

#include "src/io/checkpoint_manifest_internal.h"

namespace muster {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* key, std::string_view path) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  check(object.is_object() && found != object.end(), ErrorKind::data, "{}: '{}' is missing", path,
        key);
  return *found;
}

int64_t count_in(const Json& object, const char* key, std::string_view path) {
  const Json& found = member(object, key, path);
  const bool fits =
      found.is_number_unsigned() && found.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
  check(fits, ErrorKind::data, "{}: '{}' is no whole number from 0", path, key);
  return found.get<int64_t>();
}

bool is_digest(const Json& text) {
  return text.is_string() && is_sha256_hex(text.get_ref<const std::string&>());
}

}  // namespace

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view{"/\0", 2}) == std::string_view::npos;
}

std::string manifest_json(const CheckpointManifest& manifest) {
  JsonWriter json{2};
  json.begin_object();
  json.key("global_step").value(manifest.global_step).key("epoch").value(manifest.epoch);
  json.key("files").begin_object();
  for (const auto& [name, file] : manifest.files) {
    json.key(name).begin_object();
    json.key("size").value(static_cast<int64_t>(file.size)).key("sha256").value(file.sha256);
    json.end_object();
  }
  json.end_object().end_object();
  return json.text() + "\n";
}

CheckpointManifest parse_manifest(std::string_view json, std::string_view path) {
  constexpr int deepest = 64;  // each level takes far more memory than its bracket
  const auto check_depth = [&](int depth, Json::parse_event_t event, const Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    check(!opens || depth < deepest, ErrorKind::data, "{}: nests more than {} levels", path,
          deepest);
    return true;
  };
  const Json parsed = Json::parse(json, check_depth, false);
  // nlohmann's parser takes a zero byte for the end of the text.
  check(parsed.is_object() && json.find('\0') == std::string_view::npos, ErrorKind::data,
        "{}: is no JSON object", path);
  CheckpointManifest manifest{.global_step = count_in(parsed, "global_step", path),
                              .epoch = count_in(parsed, "epoch", path)};
  const Json& files = member(parsed, "files", path);
  check(files.is_object(), ErrorKind::data, "{}: 'files' is no object", path);
  for (const auto& [name, file] : files.items()) {
    check(is_file_name(name), ErrorKind::data, "{}: '{}' is no name of a file beside it", path,
          name);
    const auto size = static_cast<uint64_t>(count_in(file, "size", path));
    const Json& digest = member(file, "sha256", path);
    check(is_digest(digest), ErrorKind::data, "{}: the sha256 of '{}' is no such digest", path,
          name);
    manifest.files[name] = {.size = size, .sha256 = digest.get<std::string>()};
  }
  return manifest;
}

}  // namespace muster
