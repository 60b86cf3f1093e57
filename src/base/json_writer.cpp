#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>

#include <array>
#include <charconv>
#include <cmath>

namespace muster {

std::string shortest(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.begin(), buffer.end(), value).ptr;
  return {buffer.data(), end};
}

std::string json_string(std::string_view text) {
  const std::string clean = valid_utf8(text);
  std::string out = "\"";
  for (const char c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f || c == '<' || c == '>' || c == '&') {
      out += format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + '"';
}

JsonWriter::JsonWriter(int indent, NonFinite non_finite)
    : indent_{indent}, non_finite_{non_finite} {}

void JsonWriter::line() {
  if (indent_ > 0) {
    text_ += '\n';
    text_.append(levels_.size() * static_cast<size_t>(indent_), ' ');
  }
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    check(text_.empty(), "a JSON text holds one value; begin a list or an object for more");
    return;
  }
  if (levels_.back().is_object) {
    check(after_key_, "a value in a JSON object needs a key before it");
    after_key_ = false;
    return;
  }
  if (!levels_.back().empty) {
    text_ += indent_ > 0 ? "," : ", ";
  }
  levels_.back().empty = false;
  line();
}

void JsonWriter::open(char bracket, bool is_object) {
  before_value();
  text_ += bracket;
  levels_.push_back({is_object, true});
}

void JsonWriter::close(char bracket, bool is_object) {
  check(!levels_.empty() && levels_.back().is_object == is_object && !after_key_,
        "'{}' closes what is not open here", bracket);
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) {
    line();
  }
  text_ += bracket;
}

JsonWriter& JsonWriter::begin_object() {
  open('{', true);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  close('}', true);
  return *this;
}

JsonWriter& JsonWriter::begin_list() {
  open('[', false);
  return *this;
}

JsonWriter& JsonWriter::end_list() {
  close(']', false);
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  check(!levels_.empty() && levels_.back().is_object && !after_key_,
        "the key {} stands outside of a JSON object", name);
  if (!levels_.back().empty) {
    text_ += indent_ > 0 ? "," : ", ";
  }
  levels_.back().empty = false;
  line();
  text_ += json_string(name) + ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) { return raw(json_string(text)); }

JsonWriter& JsonWriter::value(double number) {
  const bool quoted = !std::isfinite(number) && non_finite_ == NonFinite::quoted;
  return raw(quoted ? '"' + shortest(number) + '"' : shortest(number));
}

JsonWriter& JsonWriter::value(int64_t number) { return raw(std::to_string(number)); }

JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

}  // namespace muster
