#include "checkpoint_choice_internal.h"

#include <muster/base/check.h>
#include <muster/io/checkpoint_folder.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Why a checkpoint cannot be gone on from; "": it can.
std::string damage_of(const fs::path& folder) {
  try {
    static_cast<void>(read_checkpoint(folder));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// The step of a checkpoint; nothing where its manifest is damaged too.
std::optional<int64_t> step_of(const fs::path& folder) {
  try {
    const auto moment = checkpoint_moment(folder);
    return moment ? std::optional{moment->global_step} : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The checkpoints beside `last`, the newest first. Those of more steps are an earlier training's.
std::vector<fs::path> others_newest_first(const fs::path& last) {
  const int64_t most = step_of(last).value_or(INT64_MAX);
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{last.parent_path(), error}) {
    if (entry.is_symlink() || !entry.is_directory() || entry.path().extension() != ".ckpt" ||
        entry.path().filename().native().starts_with('.')) {
      continue;
    }
    if (const auto step = step_of(entry.path()); step && *step <= most) {
      found.emplace_back(*step, entry.path());
    }
  }
  std::ranges::sort(found, std::greater{});
  std::vector<fs::path> folders;
  folders.reserve(found.size());
  for (auto& [step, path] : found) folders.push_back(std::move(path));
  return folders;
}

/// `last`, or the newest one beside it that is whole.
fs::path whole_last(const fs::path& last) {
  std::string damage = damage_of(last);
  if (damage.empty()) return last;
  for (const auto& folder : others_newest_first(last)) {
    if (!damage_of(folder).empty()) continue;
    std::fprintf(stderr, "muster: the last checkpoint cannot be used: %s; going on from %s\n",
                 damage.c_str(), folder.c_str());
    return folder;
  }
  fail(ErrorKind::data, "{}; and there is no whole checkpoint in {}", damage,
       last.parent_path().native());
}

fs::path choose(const fs::path& run_dir, const std::string& given) {
  const fs::path folder = run_dir / "checkpoints";
  std::error_code error;
  if (given == "last" || given == "best") {
    const fs::path link = folder / (given + ".ckpt");
    check(fs::exists(fs::symlink_status(link, error)),
          "there is no checkpoint '{}': {} does not exist; give the run_dir of the training, or a "
          "path",
          given, link.native());
    return given == "last" ? whole_last(link) : link;
  }
  if (fs::exists(given, error)) return given;
  for (const auto& name : {given, given + ".ckpt"}) {
    if (fs::exists(folder / name, error)) return folder / name;
  }
  fail(ErrorKind::usage,
       "there is no checkpoint {}, neither as a path nor as a name in {}; expected a checkpoint "
       "folder, a .safetensors file, 'last' or 'best'",
       given, folder.native());
}

}  // namespace

std::string choose_checkpoint(Group& group, const std::string& run_dir,
                              const std::string& ckpt_path) {
  if (ckpt_path.empty()) return "";
  std::string chosen;
  std::optional<Error> failure;
  if (group.rank() == 0) {
    try {
      chosen = choose(run_dir, ckpt_path);
    } catch (const Error& error) {
      failure = error;
    }
  }
  // An error must not leave the others waiting.
  const std::string told = group.broadcast(
      failure ? (failure->kind() == ErrorKind::data ? "d" : "u") + std::string{failure->what()}
              : "=" + chosen,
      0);
  if (failure) throw Error{failure->kind(), failure->what(), failure->where()};
  if (told[0] == '=') return told.substr(1);
  throw Error{told[0] == 'd' ? ErrorKind::data : ErrorKind::usage, told.substr(1)};
}

}  // namespace muster
