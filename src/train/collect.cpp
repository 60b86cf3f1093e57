#include "collect_internal.h"

#include <muster/value/value.h>

#include <algorithm>
#include <tuple>

namespace muster {

namespace {

/// What a rank sends in one round at most, unless a single output is larger.
constexpr size_t bytes_a_round = size_t{16} << 20U;

/// Takes the next outputs from `mine`; an empty text when none are left.
std::string next_chunk(const std::vector<KeyedOutput>& mine, size_t& taken) {
  Value::List items;
  size_t bytes = 0;
  while (taken < mine.size() && bytes < bytes_a_round) {
    const auto& output = mine[taken++];
    bytes += output.bytes.size();
    items.emplace_back(Value::List{output.loader, output.index, output.bytes});
  }
  return items.empty() ? std::string{} : to_bytes(std::move(items));
}

}  // namespace

std::vector<std::string> collect_in_order(Group& group, const std::vector<KeyedOutput>& mine,
                                          bool keep) {
  std::vector<KeyedOutput> all;
  size_t taken = 0;
  for (bool more = true; more;) {
    more = false;
    for (const auto& part : group.all_gather(next_chunk(mine, taken))) {
      if (part.bytes.empty()) {
        continue;
      }
      more = true;
      if (keep) {
        for (const auto& item : from_bytes(part.bytes).as_list()) {
          const auto& v = item.as_list();
          all.push_back({v.at(0).as_int(), v.at(1).as_int(), v.at(2).as_string()});
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& left, const auto& right) {
    return std::tie(left.loader, left.index) < std::tie(right.loader, right.index);
  });
  std::vector<std::string> out;
  out.reserve(all.size());
  for (auto& output : all) {
    out.push_back(std::move(output.bytes));
  }
  return out;
}

}  // namespace muster
