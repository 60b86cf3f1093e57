#include "yaml_internal.h"

#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

namespace muster {

namespace {

constexpr size_t max_bytes = size_t{1} << 20U;
constexpr size_t max_depth = 64;
constexpr size_t max_values = 100'000;

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  if (text.starts_with('+') && !text.starts_with("+-")) {
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

/// Builds the tree from the parser's events, so that a bound that is passed, an alias or a tag ends
/// the parsing at once.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view source) : source_{source} {}

  Value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    check(++documents_ == 1, "{}:{}: a second document begins; a configuration is one", source_,
          mark.line + 1);
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { add(mark, {}); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    // An alias would let a small file name a large tree many times over.
    fail(ErrorKind::usage,
         "{}:{}: aliases (*name) are not supported; write the value again, or quote the text",
         source_, mark.line + 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& text) override {
    check_tag(mark, tag);
    // Of \N and \_ yaml-cpp makes single bytes.
    check(valid_utf8(text) == text, R"({}:{}: the escapes \N and \_ are not supported; take \u)",
          source_, mark.line + 1);
    if (takes_key()) {
      Open& map = open_.back();
      check(map.keys.insert(text).second, "{}:{}: the key {} stands twice", source_, mark.line + 1,
            text);
      map.key = text;
      return;
    }
    add(mark, tag == "!" ? Value{text} : plain_scalar(text));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, Value::List{});
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, Value::Dict{});
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or map whose end has not come yet.
  struct Open {
    YAML::Mark mark{};
    Value value{};
    std::optional<std::string> key{};  ///< of a map, when its value is next
    std::set<std::string> keys{};
  };

  [[nodiscard]] bool takes_key() const {
    return !open_.empty() && open_.back().value.is_dict() && !open_.back().key;
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    check(tag.empty() || tag == "?" || tag == "!", "{}:{}: the tag {} is not supported", source_,
          mark.line + 1, tag);
  }

  void open(const YAML::Mark& mark, const std::string& tag, Value empty) {
    check_tag(mark, tag);
    // yaml-cpp takes brackets that are never closed for keys.
    check(!takes_key(), "{}:{}: a key must be a text, or a bracket is not closed", source_,
          mark.line + 1);
    check(open_.size() < max_depth, "{}:{}: more than {} levels", source_, mark.line + 1,
          max_depth);
    open_.push_back({.mark = mark, .value = std::move(empty)});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    add(closed.mark, std::move(closed.value));
  }

  void add(const YAML::Mark& mark, Value value) {
    check(++values_ <= max_values, "{}:{}: more than {} values", source_, mark.line + 1,
          max_values);
    check(!takes_key(), "{}:{}: a key must be a text", source_, mark.line + 1);
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_list()) {
      open_.back().value.as_list().push_back(std::move(value));
    } else {
      open_.back().value.as_dict().emplace_back(*open_.back().key, std::move(value));
      open_.back().key.reset();
    }
  }

  std::string_view source_;
  Value root_;
  std::vector<Open> open_;
  size_t values_ = 0;
  int documents_ = 0;
};

/// Texts of which nothing can be mistaken; yaml-cpp would also write some plain that it reads back
/// as others ("a ").
bool is_plain(std::string_view text) {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_inside = [&](char c) {
    return is_alnum(c) || std::string_view{"/._-+ "}.find(c) != std::string_view::npos;
  };
  return !text.empty() && (is_alnum(text.front()) || text.front() == '/') && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), is_inside) && plain_scalar(text).is_string();
}

void write_text(YAML::Emitter& out, const std::string& text) {
  if (!is_plain(text)) {
    out << YAML::DoubleQuoted;
  }
  out << valid_utf8(text);
}

void write(YAML::Emitter& out, const Value& value) {
  if (value.is_dict()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.as_dict()) {
      out << YAML::Key;
      write_text(out, key);
      out << YAML::Value;
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
    write_text(out, value.as_string());
  } else {
    fail(ErrorKind::usage, "a {} cannot be written as YAML", value.kind());
  }
}

}  // namespace

Value parse_yaml(std::string_view text, std::string_view source) {
  check(text.size() <= max_bytes, "{}: {} bytes of YAML; at most {} are read", source, text.size(),
        max_bytes);
  // yaml-cpp takes zero bytes for signs of UTF-16 and UTF-32.
  check(valid_utf8(text) == text && text.find('\0') == std::string_view::npos,
        "{}: this is not YAML: it holds zero bytes, or bytes that are no UTF-8", source);
  try {
    std::istringstream stream{std::string{text}};
    YAML::Parser parser{stream};
    TreeBuilder tree{source};
    while (parser.HandleNextDocument(tree)) {
    }
    return tree.take();
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::usage, "{}:{}: this is not YAML: {}", source, error.mark.line + 1, error.msg);
  }
}

Value parse_scalar(std::string_view text) {
  const bool structured = text.starts_with('[') || text.starts_with('{') || text.starts_with('"') ||
                          text.starts_with('\'');
  if (!structured) {
    return plain_scalar(text);
  }
  try {
    return parse_yaml(text, "the command line");
  } catch (const Error&) {
    return std::string{text};
  }
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  write(out, value);
  check(out.good(), "the configuration cannot be written as YAML: {}", out.GetLastError());
  return std::string{out.c_str()} + "\n";
}

}  // namespace muster
