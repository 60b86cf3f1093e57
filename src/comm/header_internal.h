#pragma once

#include <muster/comm/group.h>

#include <array>
#include <compare>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace muster::detail {

enum class Operation : int32_t { all_gather, broadcast, all_reduce, barrier, finish };
enum class Element : int32_t { none, float64, int64 };

/// What all ranks exchange before a payload travels. It goes over the wire as it lies in memory:
/// all ranks run one program on machines of one type.
struct Header {
  int64_t section = 0;
  int64_t loader = Place::before_loaders;
  int64_t round = -1;
  /// Collectives of this rank at this place so far.
  int64_t ordinal = 0;
  int64_t epoch = 0;
  /// Bytes that this rank sends.
  int64_t payload = 0;
  /// Elements of an all_reduce.
  int64_t count = 0;
  Operation operation = Operation::barrier;
  int32_t root = -1;
  Element element = Element::none;
  ReduceOp reduce = ReduceOp::sum;
  uint32_t line = 0;
  uint32_t reserved = 0;
  std::array<char, 16> stage{};
  /// The end of the path, where it is longer.
  std::array<char, 80> file{};

  static constexpr int64_t done_section = INT64_MAX;

  [[nodiscard]] auto key() const { return std::tie(section, loader, round, ordinal); }
  [[nodiscard]] bool done() const { return section == done_section; }
};
static_assert(std::has_unique_object_representations_v<Header>, "no byte may be undefined");

void set_call_site(Header& header, const std::source_location& where);
std::string_view stage_of(const Header& header);
std::string_view file_of(const Header& header);

/// "validate epoch 0, loader 0, round 2, call 1".
std::string describe_place(const Header& header);
/// "validate epoch 0, loader 0, round 2, call 1: all_gather at examples/x.cpp:41".
std::string describe(const Header& header);

std::string_view bytes_of(const Header& header);
Header header_from(std::string_view bytes);

}  // namespace muster::detail
