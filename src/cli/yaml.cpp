#include "yaml_internal.h"

#include <muster/base/check.h>
#include <muster/base/json_writer.h>

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <limits>
#include <set>
#include <system_error>

namespace muster {

namespace {

constexpr size_t max_bytes = size_t{1} << 20U;
constexpr int max_depth = 64;
constexpr int max_nodes = 100'000;

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

Value plain_scalar(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return {};
  }
  if (text == "true" || text == "True" || text == "TRUE") {
    return true;
  }
  if (text == "false" || text == "False" || text == "FALSE") {
    return false;
  }
  int64_t whole = 0;
  if (read_whole(text, whole)) {
    return whole;
  }
  if (text == ".inf" || text == "-.inf" || text == ".nan") {
    const double infinity = std::numeric_limits<double>::infinity();
    return text == ".nan"   ? std::numeric_limits<double>::quiet_NaN()
           : text == ".inf" ? infinity
                            : -infinity;
  }
  double number = 0;
  const bool looks_like_one = text.find_first_of("0123456789") != std::string_view::npos;
  if (looks_like_one && read_whole(text, number)) {
    return number;
  }
  return std::string{text};
}

class Reader {
 public:
  explicit Reader(std::string_view source) : source_{source} {}

  Value read(const YAML::Node& node, int depth) {
    check(depth <= max_depth && ++nodes_ <= max_nodes, "{}: more than {} levels or {} values",
          source_, max_depth, max_nodes);
    const std::string& tag = node.Tag();
    check(tag.empty() || tag == "?" || tag == "!", "{}:{}: the tag {} is not supported", source_,
          node.Mark().line + 1, tag);
    if (node.IsSequence()) {
      Value::List list;
      for (const auto& item : node) {
        list.push_back(read(item, depth + 1));
      }
      return list;
    }
    if (node.IsMap()) {
      return read_map(node, depth);
    }
    if (node.IsScalar()) {
      return tag == "!" ? Value{node.Scalar()} : plain_scalar(node.Scalar());
    }
    return {};
  }

 private:
  Value read_map(const YAML::Node& node, int depth) {
    Value::Dict dict;
    std::set<std::string> keys;
    for (const auto& item : node) {
      check(item.first.IsScalar(), "{}:{}: a key must be a text", source_,
            item.first.Mark().line + 1);
      const std::string& key = item.first.Scalar();
      check(keys.insert(key).second, "{}:{}: the key {} stands twice", source_,
            item.first.Mark().line + 1, key);
      dict.emplace_back(key, read(item.second, depth + 1));
    }
    return dict;
  }

  std::string_view source_;
  int nodes_ = 0;
};

/// Refuses what would make yaml-cpp recurse or expand without bound, before it parses.
void check_bounds(std::string_view text, std::string_view source) {
  check(text.size() <= max_bytes, "{}: {} bytes of YAML; at most {} are read", source, text.size(),
        max_bytes);
  int open = 0;
  size_t indent_levels = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '[' || text[i] == '{' ? 1 : text[i] == ']' || text[i] == '}' ? -1 : 0;
    const bool dash = text[i] == '-' && (i + 1 == text.size() || text[i + 1] == ' ');
    const bool key =
        (text[i] == '?' || text[i] == ':') && i + 1 < text.size() && text[i + 1] == ' ';
    indent_levels = text[i] == '\n' ? 0 : indent_levels + (dash || key ? 1 : 0);
    check(open <= max_depth && indent_levels <= size_t{max_depth}, "{}: more than {} levels",
          source, max_depth);
  }
}

void write(YAML::Emitter& out, const Value& value) {
  if (value.is_dict()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.as_dict()) {
      out << YAML::Key << key << YAML::Value;
      write(out, item);
    }
    out << YAML::EndMap;
  } else if (value.is_list()) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const auto& item : value.as_list()) {
      write(out, item);
    }
    out << YAML::EndSeq;
  } else if (value.is_null()) {
    out << YAML::Null;
  } else if (value.is_bool()) {
    out << value.as_bool();
  } else if (value.is_int()) {
    out << value.as_int();
  } else if (value.is_double()) {
    const std::string text = shortest(value.as_double());
    const bool plain = text.find_first_not_of("-0123456789") != std::string::npos;
    out << (text == "NaN"         ? ".nan"
            : text == "Infinity"  ? ".inf"
            : text == "-Infinity" ? "-.inf"
            : plain               ? text
                                  : text + ".0");
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    if (parse_scalar(text).is_string()) {
      out << text;
    } else {
      out << YAML::DoubleQuoted << text;
    }
  } else {
    fail(ErrorKind::usage, "a {} cannot be written as YAML", value.kind());
  }
}

}  // namespace

Value parse_yaml(std::string_view text, std::string_view source) {
  check_bounds(text, source);
  try {
    // An alias would let a small file name a large tree many times over.
    check(text.find("\n*") == std::string_view::npos && text.find(" *") == std::string_view::npos,
          "{}: aliases (*name) are not supported; write the value again, or quote the text",
          source);
    return Reader{source}.read(YAML::Load(std::string{text}), 0);
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::usage, "{}:{}: this is not YAML: {}", source, error.mark.line + 1, error.msg);
  }
}

Value parse_scalar(std::string_view text) {
  const bool structured = text.starts_with('[') || text.starts_with('{') || text.starts_with('"') ||
                          text.starts_with('\'');
  return structured ? parse_yaml(text, "the command line") : plain_scalar(text);
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  write(out, value);
  check(out.good(), "the configuration cannot be written as YAML: {}", out.GetLastError());
  return std::string{out.c_str()} + "\n";
}

}  // namespace muster
