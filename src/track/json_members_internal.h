#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::track {

/// A member of a JSON object with the bytes of its value as they stood.
struct JsonMember {
  std::string name;
  std::string_view raw;  ///< views the text given to json_members
};

/// The members of a JSON object in their order, values untouched (a JSON library would write
/// numbers its own way). Error of kind `data` that names `what` when `text` is no JSON object.
std::vector<JsonMember> json_members(std::string_view text, std::string_view what);

/// JSON on one line with a space after each comma and colon: also a YAML flow value.
std::string json_on_one_line(std::string_view json);

}  // namespace muster::track
