#include "src/comm/agreement_internal.h"

#include <muster/base/format.h>

#include <algorithm>

namespace muster::detail {

namespace {

bool same_section_name(const Header& left, const Header& right) {
  return left.stage == right.stage && left.epoch == right.epoch;
}

bool same_call(const Header& left, const Header& right) {
  return left.operation == right.operation && left.root == right.root &&
         left.element == right.element && left.reduce == right.reduce && left.count == right.count;
}

std::string why_absent(size_t rank, Verdict verdict, const Header& next) {
  const std::string place = describe_place(next);
  switch (verdict) {
    case Verdict::had_batch:
      return format("rank {} had a batch there but has passed by {}", rank, place);
    case Verdict::for_all:
      return format("rank {} has passed by {}, which is for all ranks", rank, place);
    case Verdict::other_section:
      return format("rank {} has passed by {} in a section of another name", rank, place);
    case Verdict::present:
    case Verdict::excused:
      break;
  }
  return "";
}

std::string find_reason(std::span<const Header> headers, std::span<const Verdict> verdicts) {
  const size_t first = next_to_serve(headers);
  const Header& next = headers[first];
  for (size_t rank = 0; rank < headers.size(); ++rank) {
    if (headers[rank].section == next.section && !same_section_name(headers[rank], next)) {
      return format("ranks {} and {} are in sections of different names", first, rank);
    }
  }
  for (size_t rank = 0; rank < headers.size(); ++rank) {
    std::string reason = why_absent(rank, verdicts[rank], next);
    if (!reason.empty()) return reason;
  }
  for (size_t rank = 0; rank < headers.size(); ++rank) {
    if (verdicts[rank] != Verdict::present) continue;
    if (!same_call(headers[rank], next)) {
      return format("ranks {} and {} call different operations", first, rank);
    }
    if (headers[rank].line != next.line || headers[rank].file != next.file) {
      return format("ranks {} and {} call from different lines", first, rank);
    }
  }
  if (next.operation == Operation::broadcast &&
      verdicts[static_cast<size_t>(next.root)] != Verdict::present) {
    return format("rank {}, the root of the broadcast, has no batch in this round", next.root);
  }
  return "";
}

}  // namespace

size_t next_to_serve(std::span<const Header> headers) {
  const auto smallest = std::min_element(
      headers.begin(), headers.end(),
      [](const Header& left, const Header& right) { return left.key() < right.key(); });
  return static_cast<size_t>(smallest - headers.begin());
}

std::string find_disagreement(std::span<const Header> headers, std::span<const Verdict> verdicts) {
  const std::string reason = find_reason(headers, verdicts);
  if (reason.empty()) return "";
  std::string message = format(
      "the ranks disagree on the next collective: {}. Every rank that has the batch must make the "
      "same calls, in the same order, from the same lines",
      reason);
  for (size_t rank = 0; rank < headers.size(); ++rank) {
    message += format("\nrank {}: {}", rank, describe(headers[rank]));
  }
  return message;
}

}  // namespace muster::detail
