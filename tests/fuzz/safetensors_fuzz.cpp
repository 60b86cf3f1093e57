// safetensors files: what is read is written and read again as the same, and as a Value where it is
// one. Each input is tried a second time with the length of its header put right.

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <muster/io/safetensors.h>
#include <muster/io/value_file.h>

#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace muster::fuzz {
namespace {

bool same(at::Tensor one, at::Tensor two) {
  return identical(Value{std::move(one)}, Value{std::move(two)});
}

bool same(const SafeTensors& one, const SafeTensors& two) {
  const auto sorted = [](NamedTensors tensors) {
    std::sort(tensors.begin(), tensors.end(),
              [](const auto& left, const auto& right) { return left.first < right.first; });
    return tensors;
  };
  const auto left = sorted(one.tensors);
  const auto right = sorted(two.tensors);
  return one.metadata == two.metadata && std::equal(left.begin(), left.end(), right.begin(),
                                                    right.end(), [](const auto& a, const auto& b) {
                                                      return a.first == b.first &&
                                                             same(a.second, b.second);
                                                    });
}

void check_file(std::string_view bytes) {
  const auto file =
      unless_refused(ErrorKind::data, [&] { return parse_safetensors(bytes, "input"); });
  if (!file) {
    return;
  }
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  require(bytes.substr(8, header).find('\0') == std::string_view::npos, "a zero byte is no JSON");
  size_t data = 0;
  for (const auto& [name, tensor] : file->tensors) {
    require(tensor.is_contiguous(), "a tensor that is not contiguous");
    data += tensor.nbytes();
  }
  require(sizeof header + header + data == bytes.size(), "the tensors do not fill the file");
  const std::string again = safetensors_bytes(file->tensors, file->metadata);
  require(same(parse_safetensors(again, "again"), *file), "what was written reads otherwise");
  const auto value =
      unless_refused(ErrorKind::data, [&] { return value_from_file(*file, "input"); });
  if (value) {
    const std::string whole = value_file_bytes(*value);
    require(identical(value_from_file(parse_safetensors(whole, "value")), *value),
            "the value that was written reads otherwise");
  }
}

/// The end of the JSON object that `text` begins with, or its own end.
size_t end_of_object(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '}')) {
      depth += c == '{' ? 1 : -1;
      if (depth == 0) {
        return at + 1;
      }
    }
  }
  return text.size();
}

}  // namespace

void check_input(std::string_view input) {
  check_file(input);
  if (input.size() > 8) {
    std::string mended{input};
    const uint64_t length = end_of_object(input.substr(8));
    std::memcpy(mended.data(), &length, sizeof length);
    check_file(mended);
  }
}

std::vector<std::string> seeds() {
  NamedTensors tensors;
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kFloat8_e5m2, at::kFloat8_e4m3fn,
                          at::kShort, at::kUInt16, at::kHalf, at::kBFloat16, at::kInt, at::kUInt32,
                          at::kFloat, at::kDouble, at::kLong, at::kUInt64, at::kComplexFloat}) {
    tensors.emplace_back(c10::toString(type), at::zeros({2, 1}, type));
  }
  const NamedTensors few{{"a", at::arange(3)}, {"b", at::zeros({0, 4})}, {"c", at::zeros({})}};
  const Value state = Value::Dict{
      {"step", int64_t{7}},
      {"", Value::List{{}, true, 0.5, "x.%\xff", at::Tensor{}, at::arange(2)}},
      {"a.b%", Value::Dict{{"__metadata__", at::zeros({1})}}},
  };
  return {safetensors_bytes({}), safetensors_bytes(tensors, {{"format", "pt"}}),
          safetensors_bytes(few, {{"k", "\xc3\xa9\"\\\n"}, {"", ""}}), value_file_bytes(state),
          value_file_bytes({})};
}

}  // namespace muster::fuzz
