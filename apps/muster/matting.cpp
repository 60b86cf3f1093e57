#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/streams.h>
#include <muster/base/thread_pool.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>

#include "arguments.h"
#include "matting/files.h"
#include "matting/output.h"
#include "matting/progress.h"
#include "matting/ranks.h"
#include "matting/terminal.h"
#include "matting/work.h"
#include "subcommand.h"

namespace muster::app {

namespace {

constexpr size_t most_thumbnails = 60;
constexpr int most_threads = 256;

struct Request {
  std::string prediction{};
  std::string truth{};
  std::string trimap{};
  std::string profile = "dim";
  std::string json{};
  std::string csv{};
  std::string html{};
  std::string missing = "error";
  int threads = 0;  ///< 0: the cores of this rank
};

void declare(CLI::App& cli, Request& request) {
  cli.allow_extras();
  cli.add_option("PRED", request.prediction, "predicted mattes: a folder, or one picture")
      ->required();
  cli.add_option("GT", request.truth, "true mattes: the same")->required();
  cli.add_option("--trimap", request.trimap,
                 "trimaps: the same; < 85 of 255 background, 85..169 unknown, >= 170 foreground");
  cli.add_option("--profile", request.profile, "convention: dim, gca, matlab or p3m")
      ->capture_default_str();
  cli.add_option("--json", request.json, "write every value as JSON; -: to stdout, alone");
  cli.add_option("--csv", request.csv, "write a row an image");
  cli.add_option("--html", request.html, "write a page with the worst images first");
  cli.add_option("-j", request.threads,
                 "threads, each of which decodes and computes images; default: all cores");
  cli.add_option("--missing", request.missing, "error or skip: a GT without prediction")
      ->capture_default_str();
}

MattingProfile profile_of(const std::string& name) {
  for (const auto& [known, profile] : enum_names(MattingProfile{})) {
    if (name == known) {
      return profile;
    }
  }
  fail(ErrorKind::usage, "--profile {}: expected dim, gca, matlab or p3m", name);
}

void check_request(const CLI::App& cli, const Request& request) {
  for (const auto& extra : cli.remaining()) {
    if (extra.size() > 1 && extra.starts_with('-')) {
      fail_unknown_option(cli, extra);
    }
    fail(ErrorKind::usage,
         "'{}' is too much: PRED and GT are two paths; see 'muster matting --help'", extra);
  }
  check(!request.prediction.empty() && !request.truth.empty(), "PRED and GT need paths");
  check(request.missing == "error" || request.missing == "skip",
        "--missing {}: expected error or skip", request.missing);
  check(cli.count("-j") == 0 || (request.threads >= 1 && request.threads <= most_threads),
        "-j {}: expected 1 to {} threads", request.threads, most_threads);
  for (const char* option : {"--trimap", "--json", "--csv", "--html"}) {
    check(cli.count(option) == 0 || !cli.get_option(option)->as<std::string>().empty(),
          "{} needs a path", option);
  }
  check(request.csv != "-" && request.html != "-",
        "only --json takes -; /dev/stdout is standard output for the others");
  const std::string& json = request.json;
  check((json.empty() || (json != request.csv && json != request.html)) &&
            (request.csv.empty() || request.csv != request.html),
        "--json, --csv and --html need paths of their own");
}

/// Where output cannot go is better known before the work.
void make_output_folders(const Request& request) {
  for (const auto* path : {&request.json, &request.csv, &request.html}) {
    const std::filesystem::path folder = std::filesystem::path{*path}.parent_path();
    if (*path != "-" && !folder.empty()) {
      make_folder(folder);
    }
  }
}

/// This rank's images, then on rank 0 those of all.
std::optional<WorkResult> compute(Group& group, const std::vector<MattingSample>& samples,
                                  WorkOptions options) {
  std::vector<int64_t> indices;
  const auto count = static_cast<int64_t>(samples.size());
  for (int64_t i = group.rank(); i < count; i += group.size()) {
    indices.push_back(i);
  }
  // Rank 0 speaks for all: their images are dealt alternately.
  const auto run = [&](const std::vector<int64_t>& some, int64_t total) {
    Progress progress{stderr, "matting", total};
    return compute_images(samples, some, options, [&](int64_t done) {
      if (group.rank() == 0) {
        const auto own = static_cast<int64_t>(some.size());
        progress.show(own > 0 ? total * done / own : 0);
      }
    });
  };
  auto result = gather_results(group, run(indices, count), options);
  group.finish();
  if (result && !result->too_large.empty()) {
    // The other ranks are done, and all memory is this one's.
    options.memory.of_rank = MemoryPlan::most_of_an_image;
    const auto large = std::exchange(result->too_large, {});
    merge_results(*result, run(large, static_cast<int64_t>(large.size())), options);
  }
  return result;
}

MattingReport report_of(const Request& request, const MatchedFiles& files, WorkResult result) {
  MattingReport report{.profile = request.profile,
                       .has_trimaps = !request.trimap.empty(),
                       .prediction = request.prediction,
                       .truth = request.truth,
                       .problems = files.problems,
                       .thumbnails = std::move(result.thumbnails)};
  for (const auto& row : result.rows) {
    const auto& sample = files.samples[static_cast<size_t>(row.index)];
    report.rows.push_back({.dataset = sample.dataset(), .name = sample.name(), .row = row});
  }
  report.problems.insert(report.problems.end(), result.problems.begin(), result.problems.end());
  std::stable_sort(report.problems.begin(), report.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.place < b.place; });
  compute_means(report);
  return report;
}

/// All that can be written is; the first failure is then thrown.
void write_outputs(const Request& request, const MattingReport& report) {
  std::exception_ptr failure;
  const auto attempt = [&](const std::string& path, auto make) {
    if (path.empty()) {
      return;
    }
    try {
      if (path == "-" && &path == &request.json) {
        print_text(make(report));
      } else {
        write_output(path, make(report));
      }
    } catch (const std::exception&) {
      failure = failure ? failure : std::current_exception();
    }
  };
  attempt(request.json, matting_json);
  attempt(request.csv, matting_csv);
  attempt(request.html, matting_html);
  if (request.json != "-") {
    print_text(matting_table(report));
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

/// Prints the problems; how many are errors.
int64_t print_problems(const std::vector<Problem>& problems) {
  int64_t errors = 0;
  for (const auto& problem : problems) {
    const bool is_error = problem.kind == Problem::Kind::error;
    errors += is_error ? 1 : 0;
    std::fprintf(stderr, "muster: %s: %s\n", is_error ? "error" : "warning",
                 printable(problem.text).c_str());
  }
  return errors;
}

int run(const Request& request, const std::optional<RankEnv>& env) {
  const int ranks_here = env ? env->local_world_size : 1;
  WorkOptions options{
      .profile = profile_of(request.profile),
      .has_trimaps = !request.trimap.empty(),
      .most_thumbnails = request.html.empty() ? 0 : most_thumbnails,
      .threads = request.threads > 0 ? request.threads : cores_for_rank(ranks_here)};
  options.memory = MemoryPlan::of(ranks_here, options.threads);
  limit_freed_memory(ranks_here, options.threads);

  const bool leads = !env || env->rank == 0;
  MatchedFiles files;
  if (leads) {
    make_output_folders(request);
    files = match_files({.prediction = request.prediction,
                         .truth = request.truth,
                         .trimap = request.trimap.empty()
                                       ? std::nullopt
                                       : std::optional<std::filesystem::path>{request.trimap},
                         .skip_missing = request.missing == "skip"});
  }
  Group group = matting_group(env);
  files = share_files(group, files);
  auto result = compute(group, files.samples, options);
  if (!result) {
    return 0;
  }
  const MattingReport report = report_of(request, files, std::move(*result));
  const int64_t errors = print_problems(report.problems);
  write_outputs(request, report);
  check(errors == 0, ErrorKind::data, "{} error{} named above; all else is computed", errors,
        errors == 1 ? " is" : "s are");
  return 0;
}

}  // namespace

int matting_command(const std::vector<std::string>& arguments) {
  CLI::App cli{
      "muster matting PRED GT [OPTIONS]\n\n"
      "SAD, MSE, gradient and connectivity error of predicted alpha mattes. Folders are matched "
      "by\n"
      "relative path without extension; the top sub-folder is the data set. Exit code 65 when a "
      "file\ncannot be used, with all else computed. On several processes: muster launch -n 2 "
      "muster\nmatting PRED GT ...",
      "muster matting"};
  Request request;
  declare(cli, request);
  if (!parse_arguments(cli, arguments)) {
    return 0;
  }
  check_request(cli, request);
  const auto env = rank_env();
  if (!env || !env->launched) {
    return run(request, env);
  }
  attach_to_launcher();
  install_terminate_handler();
  try {
    return run(request, env);
  } catch (...) {
    RankFailure failure = describe_failure(std::current_exception());
    if (failure.code == static_cast<int>(ErrorKind::data)) {
      failure.source.clear();  // it is about files, not about this program
    }
    fail_rank(failure);
  }
}

}  // namespace muster::app
