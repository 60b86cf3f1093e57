#include "src/comm/header_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <cstring>

namespace muster::detail {

namespace {

template <size_t N>
std::string_view text_of(const std::array<char, N>& field) {
  return {field.data(), strnlen(field.data(), N)};
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "unknown reduction";
}

std::string describe_operation(const Header& header) {
  switch (header.operation) {
    case Operation::all_gather:
      return "all_gather";
    case Operation::broadcast:
      return format("broadcast from rank {}", header.root);
    case Operation::all_reduce:
      return format("all_reduce ({} of {} {})", name_of(header.reduce), header.count,
                    header.element == Element::int64 ? "int64" : "double");
    case Operation::barrier:
      return "barrier";
    case Operation::finish:
      return "finish";
  }
  return "unknown operation";
}

}  // namespace

void set_call_site(Header& header, const std::source_location& where) {
  std::string_view path = where.file_name();
  if (path.size() > header.file.size()) path.remove_prefix(path.size() - header.file.size());
  header.file.fill('\0');
  std::copy(path.begin(), path.end(), header.file.begin());
  header.line = where.line();
}

std::string_view stage_of(const Header& header) { return text_of(header.stage); }

std::string_view file_of(const Header& header) { return text_of(header.file); }

std::string describe_place(const Header& header) {
  if (header.done()) return "done";
  std::string text = header.section == 0 ? std::string{"before the first section"}
                                         : format("{} epoch {}", stage_of(header), header.epoch);
  if (header.loader == Place::before_loaders) {
    if (header.section != 0) text += ", before the loaders";
  } else if (header.loader == Place::after_loaders) {
    text += ", after the loaders";
  } else {
    text += format(", loader {}", header.loader);
    if (header.round >= 0) text += format(", round {}", header.round);
  }
  return text + format(", call {}", header.ordinal + 1);
}

std::string describe(const Header& header) {
  return format("{}: {} at {}:{}", describe_place(header), describe_operation(header),
                file_of(header), header.line);
}

std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(Header)};
}

Header header_from(std::string_view bytes) {
  check(bytes.size() == sizeof(Header), ErrorKind::mismatch,
        "a header of {} bytes was expected from each rank, {} came: the ranks do not run the same "
        "program",
        sizeof(Header), bytes.size());
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  return header;
}

}  // namespace muster::detail
