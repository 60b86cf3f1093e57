#include "src/proc/verdict_internal.h"

#include <muster/base/error.h>
#include <muster/base/format.h>
#include <muster/base/text.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <tuple>

namespace muster::detail {

std::string shown(const std::string& text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (size_t at = 0; at < valid.size(); ++at) {
    const char c = valid[at];
    const bool is_control = (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    if (c == '\n') {
      out += "\n  ";
    } else if (c == '\xc2' && static_cast<unsigned char>(valid[at + 1]) < 0xa0) {
      ++at;  // U+0080 to U+009F are control characters too
    } else if (!is_control) {
      out += c;
    }
  }
  return out;
}

namespace {

constexpr int peer_lost = static_cast<int>(ErrorKind::peer_lost);

int64_t failed_ns(const RankOutcome& outcome) {
  return outcome.record ? outcome.record->monotonic_ns : outcome.ended_ns;
}

std::string first_line(const std::string& text) { return shown(text.substr(0, text.find('\n'))); }

// Its end says nothing of itself: the launcher brought it about, or is still waiting for it.
bool ended_by_launcher(const RankOutcome& outcome) {
  return !outcome.ended || (outcome.killed && outcome.signal == SIGKILL) ||
         (outcome.told_to_stop && outcome.signal == SIGTERM);
}

std::string root_block(const RankOutcome& root) {
  std::string text = format("rank {} (pid {}) {}\n", root.rank, root.pid, how_it_ended(root));
  const auto add = [&text](const char* label, const std::string& value) {
    if (!value.empty()) {
      text += format("  {}{}\n", label, shown(value));
    }
  };
  const bool said_why = root.record && !root.record->message.empty();
  if (!said_why && root.signal == SIGKILL) {
    add("", "possibly out of memory: the kernel's log (dmesg) says whether it was");
  }
  if (root.record) {
    add("", root.record->message);
    add("during ", root.record->phase);
    add("at ", root.record->source);
  }
  if (!root.record || root.record->phase.empty()) {
    add("last seen during ", root.last_seen);
  }
  if (root.record) {
    add("error file ", root.record->error_file);
  }
  return text;
}

// Those that the others lost did not say anything, as a rank does that has lost a peer itself.
bool is_silent(const RankOutcome& outcome) {
  return !outcome.record && outcome.told_to_stop && ended_by_launcher(outcome);
}

std::string hung_block(const RankOutcome& hung) {
  std::string text =
      format("rank {} (pid {}) hung: the others waited for it in vain, and the launcher ended it\n",
             hung.rank, hung.pid);
  if (!hung.last_seen.empty()) {
    text += format("  last seen during {}\n", shown(hung.last_seen));
  }
  return text;
}

// One line for a rank that is not the root cause, or "".
std::string other_line(const RankOutcome& other, const RankOutcome* root) {
  if (!other.ended) {
    return format("rank {} (pid {}) has not ended after SIGKILL and is left behind\n", other.rank,
                  other.pid);
  }
  if (!failed_by_itself(other)) {
    return other.killed && other.signal == SIGKILL
               ? format("rank {} (pid {}) did not end after SIGTERM and was killed\n", other.rank,
                        other.pid)
               : "";
  }
  if (code_of(other) == peer_lost) {
    return format("rank {}: peer lost\n", other.rank);
  }
  if (!other.record || other.record->message.empty()) {
    return format("rank {}: {}\n", other.rank, how_it_ended(other));
  }
  if (root != nullptr && root->record && root->record->message == other.record->message) {
    return format("rank {}: the same error\n", other.rank);
  }
  return format("rank {}: {}: {}\n", other.rank, how_it_ended(other),
                first_line(other.record->message));
}

const RankOutcome* find_root(std::span<const RankOutcome> outcomes, bool stopping) {
  const RankOutcome* root = nullptr;
  // Peer lost is a consequence, and so it comes after all else, whenever it was.
  const auto key = [](const RankOutcome& outcome) {
    return std::tuple{code_of(outcome) == peer_lost, failed_ns(outcome), outcome.rank};
  };
  for (const auto& outcome : outcomes) {
    // Ranks do not stop in the same instant, so that some may lose a peer over it.
    const bool counts = failed_by_itself(outcome) && !(stopping && code_of(outcome) == peer_lost);
    if (counts && (root == nullptr || key(outcome) < key(*root))) {
      root = &outcome;
    }
  }
  return root;
}

// The ranks that the others waited for are the cause of what those report.
Verdict judge_hang(std::span<const RankOutcome> outcomes, const RankOutcome& first) {
  Verdict verdict{.exit_code = peer_lost};
  for (const auto& outcome : outcomes) {
    if (is_silent(outcome)) {
      verdict.text += hung_block(outcome);
    }
  }
  if (first.record) {
    verdict.text += format("rank {}: {}\n", first.rank, first_line(first.record->message));
  }
  for (const auto& outcome : outcomes) {
    if (&outcome != &first && (!is_silent(outcome) || !outcome.ended)) {
      verdict.text += other_line(outcome, nullptr);
    }
  }
  return verdict;
}

}  // namespace

bool is_stop_code(int code) {
  return code == 128 + SIGHUP || code == 128 + SIGINT || code == 128 + SIGTERM;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string{"SIG"} + name : format("signal {}", signal);
}

bool left_early(const RankOutcome& outcome) {
  return outcome.ended && outcome.signal == 0 && outcome.exit_code == 0 && outcome.begun &&
         !outcome.finished && !outcome.told_to_stop;
}

bool stopped_by_itself(const RankOutcome& outcome) {
  return outcome.ended && !outcome.record && !outcome.told_to_stop && outcome.signal == 0 &&
         outcome.begun && is_stop_code(outcome.exit_code);
}

int code_of(const RankOutcome& outcome) {
  if (outcome.record && ended_by_launcher(outcome)) {
    return outcome.record->code;
  }
  if (left_early(outcome)) {
    return static_cast<int>(ErrorKind::mismatch);
  }
  return outcome.signal != 0 ? 128 + outcome.signal : outcome.exit_code;
}

std::string how_it_ended(const RankOutcome& outcome) {
  if (outcome.record && ended_by_launcher(outcome)) {
    return format("failed with code {}", outcome.record->code);
  }
  if (left_early(outcome)) {
    return "exited with 0 before the run ended";
  }
  return outcome.signal != 0 ? "killed by " + signal_name(outcome.signal)
                             : format("exited with code {}", outcome.exit_code);
}

bool failed_by_itself(const RankOutcome& outcome) {
  if (outcome.record) {
    return true;
  }
  if (ended_by_launcher(outcome)) {
    return false;
  }
  const bool stopped = is_stop_code(outcome.exit_code) && (outcome.told_to_stop || outcome.begun);
  return outcome.signal != 0 || left_early(outcome) || (outcome.exit_code != 0 && !stopped);
}

Verdict judge(std::span<const RankOutcome> outcomes, int stop_signal) {
  for (const auto& outcome : outcomes) {
    if (stop_signal == 0 && stopped_by_itself(outcome)) {
      stop_signal = outcome.exit_code - 128;
    }
  }
  const RankOutcome* root = find_root(outcomes, stop_signal != 0);
  Verdict verdict;
  if (root != nullptr && code_of(*root) == peer_lost &&
      std::any_of(outcomes.begin(), outcomes.end(), is_silent)) {
    return judge_hang(outcomes, *root);
  }
  if (root != nullptr) {
    verdict = {.exit_code = code_of(*root), .text = root_block(*root)};
  } else if (stop_signal != 0) {
    verdict = {.exit_code = 128 + stop_signal,
               .text = format("muster: stopped by {}\n", signal_name(stop_signal))};
  }
  for (const auto& outcome : outcomes) {
    if (&outcome != root) {
      verdict.text += other_line(outcome, root);
    }
  }
  return verdict;
}

}  // namespace muster::detail
