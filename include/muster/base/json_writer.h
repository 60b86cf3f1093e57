#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The shortest text that reads back as the same double, as std::to_chars writes it; a non-finite
/// one is NaN, Infinity or -Infinity without quotes.
std::string shortest(double value);

/// `text` as a JSON string with its quotes. Control characters are escaped, and so are `<`, `>` and
/// `&` (as \u003c), so that the result can stand in an HTML page; bytes that are not UTF-8 become
/// U+FFFD.
std::string json_string(std::string_view text);

/// Writes JSON in the order of the calls, with doubles as `shortest` gives them (a JSON library
/// would choose its own form). Not thread-safe. Misuse, such as a value without a key in an object,
/// is an Error.
class JsonWriter {
 public:
  /// How a non-finite double is written: quoted in files that must be JSON, bare where W&B's own
  /// tools write them bare.
  enum class NonFinite { quoted, bare };

  /// `indent` spaces a level; 0 writes one line.
  explicit JsonWriter(int indent = 0, NonFinite non_finite = NonFinite::quoted);

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_list();
  JsonWriter& end_list();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(double number);
  JsonWriter& value(int64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(bool flag);
  JsonWriter& null();
  /// Inserts a value that is JSON already.
  JsonWriter& raw(std::string_view json);

  /// The text so far; complete once every object and list is closed.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void before_value();
  void open(char bracket, bool is_object);
  void close(char bracket, bool is_object);
  void line();

  struct Level {
    bool is_object;
    bool empty;
  };
  std::string text_;
  std::vector<Level> levels_;
  int indent_;
  NonFinite non_finite_;
  bool after_key_ = false;
};

}  // namespace muster
