// Layout, little-endian: a tag byte, then
//   int, float      8 bytes
//   string          length (8 bytes), bytes
//   tensor          dtype code (1 byte), dimensions (1 byte), each size (8 bytes), the numbers
//   list            count (8 bytes), values
//   dict            count (8 bytes), then for each entry a string without tag and a value
#include <ATen/ops/empty.h>
#include <muster/base/check.h>
#include <muster/value/tensor.h>
#include <muster/value/value.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace muster {

namespace {

static_assert(std::endian::native == std::endian::little, "to_bytes writes memory as it is");

enum class Tag : uint8_t {
  null,
  no,
  yes,
  integer,
  number,
  text,
  undefined_tensor,
  tensor,
  list,
  dict,
};

constexpr int max_depth = 64;
constexpr size_t max_dimensions = 64;

/// The place in the list is the code in the bytes.
constexpr std::array dtypes{at::kBool,       at::kByte,   at::kChar,         at::kShort,
                            at::kInt,        at::kLong,   at::kHalf,         at::kBFloat16,
                            at::kFloat,      at::kDouble, at::kComplexFloat, at::kComplexDouble,
                            at::kUInt16,     at::kUInt32, at::kUInt64,       at::kFloat8_e4m3fn,
                            at::kFloat8_e5m2};

class Writer {
 public:
  std::string take() { return std::move(out_); }

  void value(const Value& value, int depth) {
    check(depth <= max_depth, "a value nests at most {} levels; this one goes deeper", max_depth);
    value.visit([&](const auto& content) { write(content, depth); });
  }

 private:
  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  void tag(Tag tag) { out_ += static_cast<char>(tag); }
  void size(size_t number) {
    const uint64_t wide = number;
    raw(&wide, sizeof(wide));
  }
  void string(std::string_view text) {
    size(text.size());
    raw(text.data(), text.size());
  }

  void write(std::monostate /*null*/, int /*depth*/) { tag(Tag::null); }
  void write(bool flag, int /*depth*/) { tag(flag ? Tag::yes : Tag::no); }
  void write(int64_t number, int /*depth*/) {
    tag(Tag::integer);
    raw(&number, sizeof(number));
  }
  void write(double number, int /*depth*/) {
    tag(Tag::number);
    raw(&number, sizeof(number));
  }
  void write(const std::string& text, int /*depth*/) {
    tag(Tag::text);
    string(text);
  }
  void write(const at::Tensor& tensor, int /*depth*/) {
    if (!tensor.defined()) {
      tag(Tag::undefined_tensor);
      return;
    }
    const auto* dtype = std::find(dtypes.begin(), dtypes.end(), tensor.scalar_type());
    check(dtype != dtypes.end(), "a tensor of dtype {} cannot be written; convert it first",
          dtype_name(tensor.scalar_type()));
    check(static_cast<size_t>(tensor.dim()) <= max_dimensions,
          "a tensor has at most {} dimensions, this one has {}", max_dimensions, tensor.dim());
    const at::Tensor dense = dense_on_cpu(tensor);
    tag(Tag::tensor);
    out_ += static_cast<char>(dtype - dtypes.begin());
    out_ += static_cast<char>(dense.dim());
    raw(dense.sizes().data(), dense.sizes().size() * sizeof(int64_t));
    raw(dense.const_data_ptr(), dense.nbytes());
  }
  void write(const Value::List& list, int depth) {
    tag(Tag::list);
    size(list.size());
    for (const Value& item : list) {
      value(item, depth + 1);
    }
  }
  void write(const Value::Dict& dict, int depth) {
    tag(Tag::dict);
    size(dict.size());
    for (const auto& [key, item] : dict) {
      string(key);
      value(item, depth + 1);
    }
  }

  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_{bytes} {}

  [[nodiscard]] size_t left() const { return rest_.size(); }

  Value value(int depth) {
    check(depth <= max_depth, ErrorKind::data,
          "a value in bytes nests at most {} levels; these go deeper", max_depth);
    const auto tag = static_cast<Tag>(byte());
    switch (tag) {
      case Tag::null:
        return {};
      case Tag::no:
        return false;
      case Tag::yes:
        return true;
      case Tag::integer:
        return fixed<int64_t>();
      case Tag::number:
        return fixed<double>();
      case Tag::text:
        return std::string{string()};
      case Tag::undefined_tensor:
        return at::Tensor{};
      case Tag::tensor:
        return tensor();
      case Tag::list:
        return list(depth);
      case Tag::dict:
        return dict(depth);
    }
    fail(ErrorKind::data, "the bytes of a value hold the unknown tag {}", static_cast<int>(tag));
  }

 private:
  std::string_view take(uint64_t size) {
    check(size <= rest_.size(), ErrorKind::data,
          "the bytes of a value end too early: {} more are promised, {} are there", size,
          rest_.size());
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1).front()); }
  template <typename T>
  T fixed() {
    T number;
    std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
    return number;
  }
  std::string_view string() { return take(fixed<uint64_t>()); }
  /// Each item takes a byte at least, so a count beyond the rest is wrong before any item is read.
  uint64_t count() {
    const auto items = fixed<uint64_t>();
    check(items <= rest_.size(), ErrorKind::data,
          "the bytes of a value end too early: {} items are promised, {} bytes are there", items,
          rest_.size());
    return items;
  }

  at::Tensor tensor() {
    const uint8_t code = byte();
    check(code < dtypes.size(), ErrorKind::data, "the bytes of a tensor name the unknown dtype {}",
          static_cast<int>(code));
    const uint8_t dimensions = byte();
    check(dimensions <= max_dimensions, ErrorKind::data,
          "the bytes of a tensor claim {} dimensions", static_cast<int>(dimensions));
    std::vector<int64_t> sizes;
    // Strides are products of the sizes with 0 taken as 1: these must not overflow either.
    int64_t extent = 1;
    bool empty = false;
    for (uint8_t i = 0; i < dimensions; ++i) {
      const auto size = sizes.emplace_back(fixed<int64_t>());
      empty = empty || size == 0;
      const bool fits =
          size >= 0 && !__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent);
      check(fits, ErrorKind::data, "the bytes of a tensor claim an impossible shape");
    }
    const auto item_size = static_cast<int64_t>(c10::elementSize(dtypes.at(code)));
    int64_t byte_extent = 0;
    check(!__builtin_mul_overflow(extent, item_size, &byte_extent), ErrorKind::data,
          "the bytes of a tensor claim an impossible shape");
    const auto data = take(empty ? 0 : static_cast<uint64_t>(byte_extent));
    if (dtypes.at(code) == at::kBool) {
      check(std::all_of(data.begin(), data.end(), [](char flag) { return flag == 0 || flag == 1; }),
            ErrorKind::data, "the bytes of a bool tensor hold something other than 0 and 1");
    }
    at::Tensor tensor = at::empty(sizes, dtypes.at(code));
    if (!data.empty()) {
      std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
    }
    return tensor;
  }

  Value::List list(int depth) {
    Value::List items;
    constexpr uint64_t most_reserved = 1024;  // a count may claim far more than there is
    uint64_t left = count();
    items.reserve(std::min(left, most_reserved));
    for (; left > 0; --left) {
      items.push_back(value(depth + 1));
    }
    return items;
  }

  Value::Dict dict(int depth) {
    Value::Dict entries;
    std::vector<std::string_view> keys;
    for (uint64_t left = count(); left > 0; --left) {
      keys.push_back(string());
      entries.emplace_back(std::string{keys.back()}, value(depth + 1));
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    check(twice == keys.end(), ErrorKind::data, "the bytes of a dict hold a key twice");
    return entries;
  }

  std::string_view rest_;
};

}  // namespace

std::string to_bytes(const Value& value) {
  Writer writer;
  writer.value(value, 1);
  return writer.take();
}

Value from_bytes(std::string_view bytes) {
  Reader reader{bytes};
  Value value = reader.value(1);
  check(reader.left() == 0, ErrorKind::data,
        "the bytes of a value go on for {} bytes after its end", reader.left());
  return value;
}

}  // namespace muster
