#include "report.h"

#include <muster/base/format.h>

#include <algorithm>

#include "../matting/terminal.h"
#include "request.h"

namespace muster::app {

namespace {

bool equal(const CheckedRun& run) { return run.comparison.differences.empty(); }

std::string counted(int64_t count, const char* what) {
  return format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string equal_text(int first_ranks, const std::vector<CheckedRun>& runs) {
  std::vector<int> worlds{first_ranks};
  for (const auto& run : runs) {
    worlds.push_back(run.ranks);
  }
  const RunContents& contents = runs.front().comparison.contents;
  return format("equal at {}: {}, {}, {}, {}\n", ranks_text(worlds),
                counted(contents.files, "file"), counted(contents.metrics, "metric"),
                counted(contents.samples, "sample"), counted(contents.images, "image"));
}

std::string difference_text(const RunDifference& difference, const std::string& first,
                            const std::string& second) {
  const size_t width = std::max(first.size(), second.size());
  std::string text = "  " + printable(difference.what) + "\n";
  text += format("    {:<{}}  {}\n", first, width, printable(difference.first));
  text += format("    {:<{}}  {}\n", second, width, printable(difference.second));
  if (difference.more > 0) {
    text += format("    and {} more like it\n", difference.more);
  }
  return text;
}

std::string reason_text(const std::vector<RunDifference>& environment, const std::string& first,
                        const std::string& second) {
  if (environment.empty()) {
    return "Nothing in environment.json differs (processor, instruction set, torch, threads): the\n"
           "reason is in the program, such as random numbers of its own or what it keeps from\n"
           "batch to batch.\n";
  }
  std::string text = "What may be the reason, from environment.json:\n";
  for (const auto& difference : environment) {
    text += difference_text(difference, first, second);
  }
  return text;
}

std::string different_text(int first_ranks, const CheckedRun& run) {
  const std::string first = ranks_text(first_ranks);
  const std::string second = ranks_text(run.ranks);
  std::string text = format("{} and {} differ. The first difference is\n", first, second);
  bool is_first = true;
  for (const auto& difference : run.comparison.differences) {
    text += difference_text(difference, first, second);
    if (is_first && run.comparison.differences.size() > 1) {
      text += "Others:\n";
    }
    is_first = false;
  }
  return text + reason_text(run.environment, first, second);
}

}  // namespace

std::string check_report(int first_ranks, const std::vector<CheckedRun>& runs) {
  const auto differing = std::find_if_not(runs.begin(), runs.end(), equal);
  if (differing == runs.end()) {
    return equal_text(first_ranks, runs);
  }
  std::string text = different_text(first_ranks, *differing);
  for (const auto& run : runs) {
    if (&run != &*differing) {
      text += format("{} and {} {}.\n", ranks_text(first_ranks), ranks_text(run.ranks),
                     equal(run) ? "are equal" : "differ too");
    }
  }
  return text;
}

}  // namespace muster::app
