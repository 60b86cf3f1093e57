#include "src/proc/node_list_internal.h"

#include <muster/base/check.h>

#include <charconv>

namespace muster::detail {

namespace {

constexpr size_t longest_host = 255;

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

// The first number of "03-05,7", as it is written.
std::string_view first_number(std::string_view ranges) {
  return ranges.substr(0, ranges.find_first_not_of("0123456789"));
}

// Takes a whole number of at least 1 off the front.
int take_count(std::string_view& text) {
  int count = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || count < 1) {
    return 0;
  }
  text.remove_prefix(static_cast<size_t>(after - text.data()));
  return count;
}

}  // namespace

std::string first_host(std::string_view list, std::string_view variable) {
  const auto check_list = [&](bool right) {
    check(
        right,
        "{}='{}' is no list of nodes as SLURM writes them, such as node[03-05,7]; set MASTER_ADDR "
        "to the host of rank 0",
        variable, list.substr(0, 100));
  };
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      check_list(is_host_character(list[at]));
      host += list[at];
      continue;
    }
    const size_t end = list.find(']', at);
    check_list(end != std::string_view::npos);
    const auto number = first_number(list.substr(at + 1, end - at - 1));
    check_list(!number.empty());
    host += number;
    at = end;
  }
  check_list(!host.empty() && host.size() <= longest_host && host.front() != '-');
  return host;
}

int tasks_on_node(std::string_view list, int node, std::string_view variable) {
  std::string_view rest = list;
  int64_t first = 0;  // node of the next entry
  while (!rest.empty()) {
    const int tasks = take_count(rest);
    int nodes = 1;
    bool right = tasks > 0;
    if (right && rest.starts_with("(x")) {
      rest.remove_prefix(2);
      nodes = take_count(rest);
      right = nodes > 0 && rest.starts_with(")");
      rest.remove_prefix(right ? 1 : 0);
    }
    if (!right || (!rest.empty() && rest.front() != ',')) {
      break;
    }
    first += nodes;
    if (node < first) {
      return tasks;
    }
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  fail(ErrorKind::usage, "{}='{}' says nothing of node {}; expected a list such as 2(x3),1",
       variable, list.substr(0, 100), node);
}

}  // namespace muster::detail
