#include "src/track/wandb_files_internal.h"

#include "src/track/json_members_internal.h"

#include <muster/base/format.h>
#include <muster/base/json_writer.h>

#include <algorithm>

namespace muster::track {

namespace {

/// YAML 1.1 takes 1e-05 for a text: an exponent needs a point before it and a sign.
std::string yaml_number(std::string_view json) {
  std::string number{json};
  const auto exponent = number.find_first_of("eE");
  if (exponent == std::string::npos) {
    return number;
  }
  if (number[exponent + 1] != '-' && number[exponent + 1] != '+') {
    number.insert(exponent + 1, "+");
  }
  if (number.find('.') == std::string::npos) {
    number.insert(exponent, ".0");
  }
  return number;
}

/// One-line JSON with its numbers as YAML 1.1 reads them.
std::string yaml_flow(std::string_view json) {
  constexpr std::string_view digits = "-+.0123456789eE";
  const std::string line = json_on_one_line(json);
  std::string out;
  bool in_text = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (!in_text && (c == '-' || (c >= '0' && c <= '9'))) {
      const auto end = std::min(line.find_first_not_of(digits, at), line.size());
      out += yaml_number(std::string_view{line}.substr(at, end - at));
      at = end - 1;
      continue;
    }
    out += c;
    if (in_text && c == '\\') {
      out += line[++at];
    } else if (c == '"') {
      in_text = !in_text;
    }
  }
  return out;
}

}  // namespace

std::string wandb_config_yaml(const std::vector<WandbItem>& config) {
  std::string out;
  for (const auto& item : config) {
    out += format("{}:\n    value: {}\n", json_string(item.key), yaml_flow(item.json));
  }
  return out.empty() ? "{}\n" : out;
}

std::string wandb_summary_json(const std::vector<WandbItem>& summary) {
  JsonWriter json{0, JsonWriter::NonFinite::bare};
  json.begin_object();
  for (const auto& item : summary) {
    json.key(item.key).raw(item.json);
  }
  json.end_object();
  return json.text() + "\n";
}

std::string wandb_image_path(std::string_view key, int64_t row_step, std::string_view sha256) {
  key.remove_prefix(std::min(key.find_first_not_of('/'), key.size()));
  std::string path = "media/images/";
  while (true) {
    const auto slash = key.find('/');
    const auto part = key.substr(0, slash);
    if (part == "." || part == "..") {
      path.append(part.size(), '_');
    } else {
      path += part;
    }
    if (slash == std::string_view::npos) {
      break;
    }
    path += '/';
    key.remove_prefix(slash + 1);
  }
  return format("{}_{}_{}.png", path, row_step, sha256.substr(0, 20));
}

}  // namespace muster::track
