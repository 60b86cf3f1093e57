#include <ATen/ops/empty.h>
#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>
#include <muster/io/safetensors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <istream>
#include <streambuf>
#include <string_view>
#include <tuple>

#include "src/io/safetensors_header_internal.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors holds little-endian numbers");

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 16> types{{
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F32", at::kFloat},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
    {"C64", at::kComplexFloat},
}};

at::ScalarType type_called(const TensorEntry& entry, std::string_view file) {
  const auto* found = std::find_if(types.begin(), types.end(),
                                   [&](const auto& t) { return t.first == entry.dtype; });
  check(found != types.end(), ErrorKind::data,
        "{}: tensor '{}' is of type '{}', which is not known here", file, entry.name, entry.dtype);
  return found->second;
}

std::string_view name_of(at::ScalarType type, std::string_view tensor) {
  const auto* found =
      std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.second == type; });
  check(found != types.end(), "Tensor '{}' is of type {}, which safetensors cannot hold", tensor,
        c10::toString(type));
  return found->first;
}

/// Bytes that shape and type ask for. No product overflows, also where another size is 0.
int64_t bytes_of(const TensorEntry& entry, at::ScalarType type, std::string_view file) {
  auto bytes = static_cast<int64_t>(c10::elementSize(type));
  bool empty = false;
  for (const int64_t size : entry.shape) {
    empty = empty || size == 0;
    check(!__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes), ErrorKind::data,
          "{}: tensor '{}' has a shape that is too large", file, entry.name);
  }
  return empty ? 0 : bytes;
}

std::string read_header(std::istream& input, int64_t file_size, std::string_view file) {
  constexpr int64_t largest = 100'000'000;
  uint64_t length = 0;
  input.read(reinterpret_cast<char*>(&length), sizeof length);
  check(input.good(), ErrorKind::data, "{}: is no safetensors file: it has {} bytes", file,
        file_size);
  check(length <= static_cast<uint64_t>(std::min(largest, file_size - 8)), ErrorKind::data,
        "{}: is no safetensors file, or it is cut short: it claims a header of {} bytes and has {} "
        "in all",
        file, length, file_size);
  std::string header(static_cast<size_t>(length), '\0');
  input.read(header.data(), static_cast<std::streamsize>(length));
  check(input.good(), ErrorKind::data, "{}: cannot be read any further in its header", file);
  return header;
}

/// Checks that the tensors, in the order of their bytes, fill what follows the header exactly.
void check_layout(const std::vector<TensorEntry>& entries, int64_t data_bytes,
                  std::string_view file) {
  int64_t at = 0;
  for (const auto& entry : entries) {
    const int64_t begin = entry.offsets[0];
    const int64_t end = entry.offsets[1];
    check(begin == at, ErrorKind::data,
          "{}: tensor '{}' begins at byte {} where {} is expected: {}", file, entry.name, begin, at,
          begin < at ? "tensors overlap" : "there is a gap");
    const int64_t expected = bytes_of(entry, type_called(entry, file), file);
    check(end >= begin && end - begin == expected, ErrorKind::data,
          "{}: tensor '{}' needs {} bytes and its offsets are {} to {}", file, entry.name, expected,
          begin, end);
    check(end <= data_bytes, ErrorKind::data, "{}: is cut short: tensor '{}' ends at byte {} of {}",
          file, entry.name, end, data_bytes);
    at = end;
  }
  check(at == data_bytes, ErrorKind::data, "{}: {} bytes follow the last tensor", file,
        data_bytes - at);
}

at::Tensor read_tensor(std::istream& input, const TensorEntry& entry, std::string_view file) {
  const auto type = type_called(entry, file);
  at::Tensor tensor = at::empty(entry.shape, type);
  auto* bytes = static_cast<char*>(tensor.mutable_data_ptr());
  const auto size = static_cast<std::streamsize>(tensor.nbytes());
  input.read(bytes, size);
  check(size == 0 || input.good(), ErrorKind::data, "{}: tensor '{}' cannot be read", file,
        entry.name);
  if (type == at::kBool) {
    const bool ok =
        std::all_of(bytes, bytes + size, [](char byte) { return byte == 0 || byte == 1; });
    check(ok, ErrorKind::data, "{}: tensor '{}' of BOOL holds a byte that is not 0 or 1", file,
          entry.name);
  }
  return tensor;
}

/// The header, its tensors in the order of their bytes; `input` is left at the first of these.
SafeTensorsHeader read_layout(std::istream& input, int64_t file_size, std::string_view file) {
  const std::string json = read_header(input, file_size, file);
  SafeTensorsHeader header = parse_safetensors_header(json, file);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& left, const auto& right) {
    return std::tie(left.offsets, left.name) < std::tie(right.offsets, right.name);
  });
  check_layout(header.tensors, file_size - 8 - static_cast<int64_t>(json.size()), file);
  return header;
}

SafeTensors read(std::istream& input, int64_t file_size, std::string_view file) {
  SafeTensorsHeader header = read_layout(input, file_size, file);
  SafeTensors result{.metadata = std::move(header.metadata)};
  for (auto& entry : header.tensors) {
    at::Tensor tensor = read_tensor(input, entry, file);
    result.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return result;
}

/// Lets a stream read bytes where they lie; a string stream would copy them.
class BytesInPlace : public std::streambuf {
 public:
  explicit BytesInPlace(std::string_view bytes) {
    auto* begin = const_cast<char*>(bytes.data());  // NOLINT: only read from
    setg(begin, begin, begin + bytes.size());
  }
};

/// The tensors in the order of the file, and none twice.
NamedTensors in_file_order(const NamedTensors& tensors) {
  NamedTensors sorted = tensors;
  std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    const auto left_size = left.second.element_size();
    const auto right_size = right.second.element_size();
    return left_size != right_size ? left_size > right_size : left.first < right.first;
  });
  return sorted;
}

void check_names(const NamedTensors& tensors) {
  std::vector<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    check(name != "__metadata__", "A tensor in safetensors cannot be called __metadata__");
    check(tensor.defined(), "Tensor '{}' is not defined and cannot be saved", name);
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  check(twice == names.end(), "Two tensors to be saved are called '{}'",
        twice == names.end() ? std::string_view{} : *twice);
}

std::string header_of(const NamedTensors& tensors, const NamedTexts& metadata) {
  JsonWriter json;
  json.begin_object();
  if (!metadata.empty()) {
    json.key("__metadata__").begin_object();
    for (const auto& [name, text] : metadata) {
      json.key(name).value(text);
    }
    json.end_object();
  }
  int64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    json.key(name).begin_object();
    json.key("dtype").value(name_of(tensor.scalar_type(), name)).key("shape").begin_list();
    for (const int64_t size : tensor.sizes()) {
      json.value(size);
    }
    const int64_t end = at + static_cast<int64_t>(tensor.nbytes());
    json.end_list().key("data_offsets").begin_list().value(at).value(end).end_list().end_object();
    at = end;
  }
  json.end_object();
  std::string text = json.text();
  text.append((8 - text.size() % 8) % 8, ' ');  // tensors begin at a multiple of 8
  return text;
}

}  // namespace

SafeTensors load_safetensors(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  check(!error, ErrorKind::data, "{}: cannot be opened as a file", path.native());  // or waits
  std::ifstream input{path, std::ios::binary};
  check(input.is_open(), ErrorKind::data, "{}: cannot be opened as a file", path.native());
  return read(input, static_cast<int64_t>(size), path.native());
}

SafeTensors parse_safetensors(std::string_view bytes, std::string_view name) {
  BytesInPlace buffer{bytes};
  std::istream input{&buffer};
  return read(input, static_cast<int64_t>(bytes.size()), name);
}

NamedTexts safetensors_digests(std::string_view bytes, std::string_view name) {
  BytesInPlace buffer{bytes};
  std::istream input{&buffer};
  const auto header = read_layout(input, static_cast<int64_t>(bytes.size()), name);
  const int64_t data_bytes = header.tensors.empty() ? 0 : header.tensors.back().offsets[1];
  const std::string_view data = bytes.substr(bytes.size() - static_cast<size_t>(data_bytes));
  NamedTexts digests;
  for (const auto& entry : header.tensors) {
    const auto begin = static_cast<size_t>(entry.offsets[0]);
    const auto end = static_cast<size_t>(entry.offsets[1]);
    digests.emplace_back(entry.name, sha256_hex(data.substr(begin, end - begin)));
  }
  return digests;
}

std::string safetensors_bytes(const NamedTensors& tensors, const NamedTexts& metadata) {
  check_names(tensors);
  const NamedTensors sorted = in_file_order(tensors);
  const std::string header = header_of(sorted, metadata);
  size_t total = 8 + header.size();
  for (const auto& [name, tensor] : sorted) {
    total += tensor.nbytes();
  }
  std::string bytes;
  bytes.reserve(total);
  const auto length = static_cast<uint64_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(header);
  for (const auto& [name, tensor] : sorted) {
    const auto plain = tensor.detach().to(at::kCPU).contiguous();
    bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
  }
  return bytes;
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const NamedTexts& metadata) {
  write_file_atomically(path, safetensors_bytes(tensors, metadata));
}

}  // namespace muster
