#include <muster/comm/group.h>

#include "src/comm/agreement_internal.h"
#include "src/comm/attendance_internal.h"
#include "src/comm/header_internal.h"
#include "src/comm/self_internal.h"
#include "src/comm/watch_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace muster {

using detail::Attendance;
using detail::Element;
using detail::Header;
using detail::Operation;
using detail::Verdict;
using detail::Watch;

struct Group::State {
  State(std::unique_ptr<Transport> t, GroupOptions options)
      : transport{std::move(t)}, rank{transport->rank()}, size{transport->size()} {
    if (size > 1) watch.emplace(rank, size, std::move(options));
  }

  std::unique_ptr<Transport> transport;
  int rank;
  int size;
  std::thread::id owner = std::this_thread::get_id();
  bool in_collective = false;
  bool finished = false;
  std::optional<Error> broken{};

  Place place{};
  int64_t ordinal = 0;
  std::array<char, 16> stage{};
  int64_t epoch = 0;
  Attendance attendance{};
  Counts counts{};
  std::optional<Watch> watch{};

  void check_owner(std::string_view what) const;
  Header header(Operation operation, const std::source_location& where) const;
  std::vector<Contribution> collective(Header mine, std::string_view payload);
  std::vector<Contribution> serve(const Header& mine, std::string_view payload);
  std::vector<Header> exchange_headers(const Header& mine);
  std::vector<Verdict> exchange_verdicts(const std::vector<Header>& headers, const Header& next);
  std::vector<Contribution> exchange_payloads(const std::vector<Header>& headers,
                                              const std::vector<Verdict>& verdicts,
                                              std::string_view payload);
  template <class T>
  std::vector<T> all_reduce(std::span<const T> mine, ReduceOp op, Element element,
                            const std::source_location& where);
};

void Group::State::check_owner(std::string_view what) const {
  check(std::this_thread::get_id() == owner,
        "{} was called from another thread than the one that made the group; a group has one owner "
        "thread: collect what other threads have and call from the owner",
        what);
  check(!in_collective, "{} was called inside another collective of the same group", what);
}

Header Group::State::header(Operation operation, const std::source_location& where) const {
  check_owner("a collective");
  Header header;
  header.section = place.section;
  header.loader = place.loader;
  header.round = place.round;
  header.ordinal = ordinal;
  header.stage = stage;
  header.epoch = epoch;
  header.operation = operation;
  set_call_site(header, where);
  return header;
}

std::vector<Contribution> Group::State::collective(Header mine, std::string_view payload) {
  if (broken) throw Error{*broken};
  check(!finished, "a collective was called after finish(), which is the last call on a group");
  mine.payload = static_cast<int64_t>(payload.size());
  finished = mine.done();

  struct Inside {
    explicit Inside(State& s, const Header& header) : state{s} {
      state.in_collective = true;
      if (state.watch) state.watch->begin(header);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      state.in_collective = false;
      if (state.watch) state.watch->end();
    }
    State& state;
  } inside{*this, mine};

  try {
    auto contributions = serve(mine, payload);
    ++ordinal;
    return contributions;
  } catch (const Error& error) {
    broken = error.kind() == ErrorKind::peer_lost
                 ? Error{error.kind(),
                         format("{} (rank {} was at {})", error.what(), rank, describe(mine)),
                         error.where()}
                 : error;
  } catch (const std::exception& error) {
    broken = Error{ErrorKind::peer_lost,
                   format("{} (rank {} was at {})", error.what(), rank, describe(mine))};
  }
  throw Error{*broken};
}

std::vector<Contribution> Group::State::serve(const Header& mine, std::string_view payload) {
  if (size == 1) {
    if (mine.done()) return {};
    return {{0, std::string{payload}}};
  }
  while (true) {
    const auto headers = exchange_headers(mine);
    const Header& next = headers[detail::next_to_serve(headers)];
    if (next.done()) return {};
    const auto verdicts = exchange_verdicts(headers, next);
    const std::string disagreement = detail::find_disagreement(headers, verdicts);
    check(disagreement.empty(), ErrorKind::mismatch, "{}", disagreement);
    auto contributions = exchange_payloads(headers, verdicts, payload);
    if (verdicts[static_cast<size_t>(rank)] == Verdict::present) return contributions;
  }
}

std::vector<Header> Group::State::exchange_headers(const Header& mine) {
  const auto all = transport->exchange(bytes_of(mine));
  ++counts.header_rounds;
  counts.bytes_sent += static_cast<int64_t>(sizeof(Header));
  std::vector<Header> headers;
  headers.reserve(all.size());
  for (const auto& bytes : all) headers.push_back(detail::header_from(bytes));
  watch->seen(headers);
  attendance.forget_before(headers[detail::next_to_serve(headers)].section);
  return headers;
}

std::vector<Verdict> Group::State::exchange_verdicts(const std::vector<Header>& headers,
                                                     const Header& next) {
  std::vector<Verdict> verdicts(headers.size(), Verdict::present);
  const auto is_later = [&](const Header& header) { return header.key() != next.key(); };
  if (std::none_of(headers.begin(), headers.end(), is_later)) return verdicts;

  const bool late = is_later(headers[static_cast<size_t>(rank)]);
  const auto mine = static_cast<char>(late ? attendance.verdict(next) : Verdict::present);
  const auto all = transport->exchange(std::string_view{&mine, 1});
  ++counts.header_rounds;
  ++counts.bytes_sent;
  std::transform(all.begin(), all.end(), verdicts.begin(),
                 [](const std::string& byte) { return static_cast<Verdict>(byte.at(0)); });
  return verdicts;
}

std::vector<Contribution> Group::State::exchange_payloads(const std::vector<Header>& headers,
                                                          const std::vector<Verdict>& verdicts,
                                                          std::string_view payload) {
  std::vector<int64_t> sizes;
  for (size_t r = 0; r < headers.size(); ++r) {
    sizes.push_back(verdicts[r] == Verdict::present ? headers[r].payload : 0);
  }
  std::vector<std::string> all(headers.size());
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n > 0; })) {
    const auto mine = payload.substr(0, static_cast<size_t>(sizes[static_cast<size_t>(rank)]));
    all = transport->exchange(mine, sizes);
    ++counts.payload_rounds;
    counts.bytes_sent += static_cast<int64_t>(mine.size());
  }
  std::vector<Contribution> contributions;
  for (size_t r = 0; r < all.size(); ++r) {
    if (verdicts[r] == Verdict::present) {
      contributions.push_back({static_cast<int>(r), std::move(all[r])});
    }
  }
  return contributions;
}

namespace {

double fold(double left, double right, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      break;
    case ReduceOp::min:
      return std::isnan(left) || left <= right ? left : right;
    case ReduceOp::max:
      return std::isnan(left) || left >= right ? left : right;
  }
  return left + right;
}

int64_t fold(int64_t left, int64_t right, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      break;
    case ReduceOp::min:
      return std::min(left, right);
    case ReduceOp::max:
      return std::max(left, right);
  }
  int64_t sum = 0;
  check(!__builtin_add_overflow(left, right, &sum), ErrorKind::user,
        "the sum over the ranks, {} + {}, does not fit an int64; reduce doubles instead", left,
        right);
  return sum;
}

template <class T>
std::vector<T> elements_of(const std::string& bytes, size_t count) {
  std::vector<T> elements(count);
  if (count > 0) std::memcpy(elements.data(), bytes.data(), count * sizeof(T));
  return elements;
}

}  // namespace

template <class T>
std::vector<T> Group::State::all_reduce(std::span<const T> mine, ReduceOp op, Element element,
                                        const std::source_location& where) {
  Header head = header(Operation::all_reduce, where);
  head.count = static_cast<int64_t>(mine.size());
  head.element = element;
  head.reduce = op;
  const std::string_view bytes{reinterpret_cast<const char*>(mine.data()), mine.size_bytes()};
  const auto contributions = collective(head, bytes);
  auto result = elements_of<T>(contributions.front().bytes, mine.size());
  for (size_t i = 1; i < contributions.size(); ++i) {
    const auto other = elements_of<T>(contributions[i].bytes, mine.size());
    std::transform(result.begin(), result.end(), other.begin(), result.begin(),
                   [op](T left, T right) { return fold(left, right, op); });
  }
  return result;
}

Group Group::self() { return Group{detail::make_self_transport()}; }

Group::Group(std::unique_ptr<Transport> transport, GroupOptions options)
    : state_{std::make_shared<State>(std::move(transport), std::move(options))} {}

int Group::rank() const { return state_->rank; }

int Group::size() const { return state_->size; }

void Group::begin_section(std::string_view stage, int64_t epoch) {
  auto& s = *state_;
  s.check_owner("begin_section");
  check(stage.size() <= s.stage.size(), "the stage '{}' has {} bytes; at most {} are kept", stage,
        stage.size(), s.stage.size());
  s.place = {.section = s.place.section + 1};
  s.ordinal = 0;
  s.stage.fill('\0');
  std::copy(stage.begin(), stage.end(), s.stage.begin());
  s.epoch = epoch;
  s.attendance.begin_section(s.place.section, stage, epoch);
}

void Group::move_to(int64_t loader, int64_t round) {
  auto& s = *state_;
  s.check_owner("move_to");
  const bool is_loader = loader >= 0 && loader < Place::after_loaders;
  check(is_loader
            ? round >= -1
            : round == -1 && (loader == Place::before_loaders || loader == Place::after_loaders),
        "there is no place at loader {}, round {}", loader, round);
  const Place to{s.place.section, loader, round};
  check(to >= s.place,
        "a step back from loader {}, round {} to loader {}, round {}; places of a section only go "
        "forward",
        s.place.loader, s.place.round, loader, round);
  if (to == s.place) return;
  s.place = to;
  s.ordinal = 0;
  if (round >= 0) s.attendance.add(loader, round);
}

Place Group::place() const { return state_->place; }

std::vector<Contribution> Group::all_gather(std::string_view mine, std::source_location where) {
  return state_->collective(state_->header(Operation::all_gather, where), mine);
}

std::string Group::broadcast(std::string_view mine, int root, std::source_location where) {
  auto& s = *state_;
  check(root >= 0 && root < s.size, "root {} is no rank of a group of {}", root, s.size);
  Header head = s.header(Operation::broadcast, where);
  head.root = root;
  auto contributions = s.collective(head, root == s.rank ? mine : std::string_view{});
  const auto from_root = std::find_if(contributions.begin(), contributions.end(),
                                      [&](const Contribution& c) { return c.rank == root; });
  return std::move(from_root->bytes);
}

std::vector<double> Group::all_reduce(std::span<const double> mine, ReduceOp op,
                                      std::source_location where) {
  return state_->all_reduce(mine, op, Element::float64, where);
}

std::vector<int64_t> Group::all_reduce(std::span<const int64_t> mine, ReduceOp op,
                                       std::source_location where) {
  return state_->all_reduce(mine, op, Element::int64, where);
}

void Group::barrier(std::source_location where) {
  state_->collective(state_->header(Operation::barrier, where), {});
}

void Group::finish(std::source_location where) {
  Header head = state_->header(Operation::finish, where);
  head.section = Header::done_section;
  state_->collective(head, {});
}

void Group::abort(const std::string& reason) const { state_->transport->abort(reason); }

Group::Counts Group::counts() const { return state_->counts; }

Transport& Group::transport() const { return *state_->transport; }

}  // namespace muster
