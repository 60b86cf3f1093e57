#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>
#include <muster/io/value_file.h>
#include <muster/value/tensor.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <system_error>

namespace muster {
namespace {

constexpr int max_depth = 64;
constexpr std::string_view root = ".";  // no path of a child: their parts hold no dot

bool is_utf8(std::string_view text) { return valid_utf8(text) == text; }

/// `text` with %XX for the percent sign, for bytes of `special`, and for all that is not ASCII
/// where the whole is not UTF-8.
std::string escape(std::string_view text, std::string_view special) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const bool ascii_only = !is_utf8(text);
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '%' || special.find(letter) != special.npos || (ascii_only && byte >= 0x80)) {
      out.append({'%', digits[byte / 16], digits[byte % 16]});
    } else {
      out += letter;
    }
  }
  return out;
}

/// What `escape` wrote, and perhaps more: callers compare with what they would have written.
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* digits = text.data() + i + 1;
    if (text.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

/// A key as a part of a path, never empty. A tensor must not be called __metadata__.
std::string part_of(std::string_view key) {
  if (key.empty()) return "%";
  if (key == "__metadata__") return "%5F_metadata__";
  return escape(key, ".");
}

std::string below(std::string_view path, std::string_view part) {
  std::string out{path == root ? std::string_view{} : path};
  return out.append(out.empty() ? "" : ".").append(part);
}

std::string text_of(double number) {
  constexpr auto plain_nan = std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
  const auto bits = std::bit_cast<uint64_t>(number);
  return std::isnan(number) && bits != plain_nan ? format("0x{:016x}", bits) : shortest(number);
}

/// The text of a leaf or of a list or dict itself.
struct NodeText {
  std::string operator()(std::monostate /*null*/) const { return "null"; }
  std::string operator()(bool flag) const { return flag ? "bool:true" : "bool:false"; }
  std::string operator()(int64_t number) const { return "int:" + std::to_string(number); }
  std::string operator()(double number) const { return "float:" + text_of(number); }
  std::string operator()(const std::string& text) const {
    return is_utf8(text) ? "string:" + text : "bytes:" + escape(text, "");
  }
  std::string operator()(const at::Tensor& tensor) const {
    return tensor.defined() ? "tensor" : "tensor:undefined";
  }
  std::string operator()(const Value::List& list) const {
    return "list:" + std::to_string(list.size());
  }
  std::string operator()(const Value::Dict& dict) const {
    return "dict:" + std::to_string(dict.size());
  }
};

class Writer {
 public:
  void node(const std::string& path, const Value& value, int depth) {
    check(depth <= max_depth, "'{}': a value nests at most {} levels", path, max_depth);
    texts_.emplace_back(path, value.visit(NodeText{}));
    if (value.is_tensor() && value.as_tensor().defined()) {
      tensors_.emplace_back(path, dense_on_cpu(value.as_tensor()));
    } else if (value.is_list()) {
      size_t index = 0;
      for (const Value& item : value.as_list()) {
        node(below(path, std::to_string(index++)), item, depth + 1);
      }
    } else if (value.is_dict()) {
      check_keys(path, value.as_dict());
      for (const auto& [key, item] : value.as_dict()) {
        node(below(path, part_of(key)), item, depth + 1);
      }
    }
  }

  [[nodiscard]] std::string bytes() const { return safetensors_bytes(tensors_, texts_); }

 private:
  static void check_keys(std::string_view path, const Value::Dict& dict) {
    std::vector<std::string_view> keys;
    for (const auto& [key, item] : dict) {
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    check(twice == keys.end(), "'{}': the dict holds the key '{}' twice", path,
          twice == keys.end() ? std::string_view{} : *twice);
  }

  NamedTensors tensors_;
  NamedTexts texts_;
};

/// Takes the nodes in the order in which the writer left them.
class Reader {
 public:
  Reader(const SafeTensors& file, std::string_view name)
      : texts_{file.metadata},
        tensors_{file.tensors.begin(), file.tensors.end()},
        tensors_left_{file.tensors.size()},
        name_{name} {}

  Value whole() {
    Value value = node(root, 1);
    check(at_ == texts_.size(), ErrorKind::data, "{}: metadata '{}' is no part of the value", name_,
          at_ < texts_.size() ? texts_[at_].first : "");
    check(tensors_left_ == 0, ErrorKind::data,
          "{}: {} of its tensors are no part of the value that its metadata describes", name_,
          tensors_left_);
    return value;
  }

 private:
  Value node(std::string_view path, int depth) {
    check(depth <= max_depth, ErrorKind::data, "{}: '{}' lies more than {} levels deep", name_,
          path, max_depth);
    check(at_ < texts_.size() && texts_[at_].first == path, ErrorKind::data,
          "{}: expected metadata '{}' of a value, found {}", name_, path,
          at_ < texts_.size() ? "'" + texts_[at_].first + "'" : "the end");
    const std::string& text = texts_[at_++].second;
    Value value = content(path, text, depth);
    check(value.visit(NodeText{}) == text, ErrorKind::data,
          "{}: metadata '{}' is no text of a value: '{}'", name_, path, text);
    return value;
  }

  /// A text that is none of a value may give any Value; `node` compares.
  Value content(std::string_view path, std::string_view text, int depth) {
    const size_t colon = std::min(text.find(':'), text.size());
    const auto kind = text.substr(0, colon);
    const auto rest = text.substr(std::min(colon + 1, text.size()));
    if (kind == "bool") return rest == "true";
    if (kind == "int") return number<int64_t>(rest);
    if (kind == "float") return floating(rest);
    if (kind == "string") return std::string{rest};
    if (kind == "bytes") return unescape(rest).value_or("");
    if (kind == "tensor") return rest.empty() ? tensor(path) : at::Tensor{};
    if (kind == "list") return list(path, number<int64_t>(rest), depth);
    if (kind == "dict") return dict(path, number<int64_t>(rest), depth);
    return {};
  }

  template <typename T>
  static T number(std::string_view text) {
    T number{};
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  static double floating(std::string_view text) {
    if (!text.starts_with("0x")) return number<double>(text);
    uint64_t bits = 0;
    std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    return std::bit_cast<double>(bits);
  }

  at::Tensor tensor(std::string_view path) {
    const auto found = tensors_.find(path);
    check(found != tensors_.end(), ErrorKind::data, "{}: tensor '{}' is missing", name_, path);
    --tensors_left_;
    return found->second;
  }

  Value::List list(std::string_view path, int64_t count, int depth) {
    Value::List items;
    for (int64_t i = 0; i < count; ++i) {
      items.push_back(node(below(path, std::to_string(i)), depth + 1));
    }
    return items;
  }

  /// Paths are unique in a file, and so the keys are.
  Value::Dict dict(std::string_view path, int64_t count, int depth) {
    Value::Dict entries;
    const std::string start = below(path, "");
    for (int64_t i = 0; i < count; ++i) {
      const std::string child = at_ < texts_.size() ? texts_[at_].first : "";
      const bool inside = child.size() > start.size() && child.starts_with(start);
      const auto part = std::string_view{child}.substr(inside ? start.size() : child.size());
      auto key = part == "%" ? std::string{} : unescape(part);
      check(inside && key && part_of(*key) == part, ErrorKind::data,
            "{}: expected metadata of entry {} in '{}', found '{}'", name_, i, path, child);
      entries.emplace_back(std::move(*key), node(child, depth + 1));
    }
    return entries;
  }

  const NamedTexts& texts_;
  std::map<std::string, at::Tensor, std::less<>> tensors_;
  size_t at_ = 0;
  size_t tensors_left_;
  std::string_view name_;
};

}  // namespace

std::string value_file_bytes(const Value& value) {
  Writer writer;
  writer.node(std::string{root}, value, 1);
  return writer.bytes();
}

Value value_from_file(const SafeTensors& file, std::string_view name) {
  return Reader{file, name}.whole();
}

}  // namespace muster
