#pragma once

#include "src/comm/attendance_internal.h"
#include "src/comm/header_internal.h"

#include <span>
#include <string>

namespace muster::detail {

/// The rank (the lowest of several) whose header is the smallest: its place is served next.
size_t next_to_serve(std::span<const Header> headers);

/// The message of the mismatch, with one line a rank, or "" when the ranks agree on what is served
/// next. Gives the same text on every rank. `verdicts` holds what each rank said about the smallest
/// place.
std::string find_disagreement(std::span<const Header> headers, std::span<const Verdict> verdicts);

}  // namespace muster::detail
