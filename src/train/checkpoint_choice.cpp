#include "checkpoint_choice_internal.h"

#include "training_id_internal.h"

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

/// Where a checkpoint stands; nothing where its manifest is damaged too.
std::optional<CheckpointMoment> moment_of(const fs::path& folder) {
  try {
    return checkpoint_moment(folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The checkpoints in a folder, without links to them.
std::vector<std::pair<fs::path, CheckpointMoment>> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<fs::path, CheckpointMoment>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{folder, error}) {
    if (entry.is_symlink() || !entry.is_directory() || entry.path().extension() != ".ckpt" ||
        entry.path().filename().native().starts_with('.')) {
      continue;
    }
    if (auto moment = moment_of(entry.path())) {
      found.emplace_back(entry.path(), *std::move(moment));
    }
  }
  return found;
}

/// Those beside `last` that may stand in for it, the newest first: of more steps, or of another
/// training, they are an earlier one's. `training` is that of `last`; "": not known.
std::vector<fs::path> others_newest_first(const fs::path& last,
                                          const std::optional<CheckpointMoment>& moment,
                                          const std::string& training) {
  std::vector<std::pair<int64_t, fs::path>> found;
  for (auto& [path, other] : checkpoints_in(last.parent_path())) {
    // One that has no id is of a training that never had one.
    const bool is_other = (moment || !training.empty()) && other.training != training;
    if (!is_other && (!moment || other.global_step <= moment->global_step)) {
      found.emplace_back(other.global_step, std::move(path));
    }
  }
  std::ranges::sort(found, std::greater{});
  std::vector<fs::path> folders;
  folders.reserve(found.size());
  for (auto& [step, path] : found) folders.push_back(std::move(path));
  return folders;
}

/// `last`, or the newest one of its training beside it that is whole.
fs::path whole_last(const fs::path& run_dir, const fs::path& last) {
  const std::string damage = damage_of(last);
  if (damage.empty()) return last;
  const auto moment = moment_of(last);
  const bool says_it = moment && !moment->training.empty();
  const std::string training = says_it ? moment->training : remembered_training(run_dir);
  for (const auto& folder : others_newest_first(last, moment, training)) {
    if (!damage_of(folder).empty()) continue;
    std::fprintf(stderr, "muster: the last checkpoint cannot be used: %s; going on from %s%s\n",
                 damage.c_str(), folder.c_str(),
                 training.empty()
                     ? ", which may be another training's: nothing says whose the last "
                       "one was"
                     : "");
    return folder;
  }
  fail(ErrorKind::data, "{}; and there is no whole checkpoint{} in {}", damage,
       training.empty() ? "" : " of the same training", last.parent_path().native());
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
    return given == "last" ? whole_last(run_dir, link) : link;
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

/// What rank 0 finds. An error of it must not leave the others waiting.
std::string told_by_rank_0(Group& group, const std::function<std::string()>& find) {
  std::string found;
  std::optional<Error> failure;
  if (group.rank() == 0) {
    try {
      found = find();
    } catch (const Error& error) {
      failure = error;
    }
  }
  const std::string told = group.broadcast(
      failure ? (failure->kind() == ErrorKind::data ? "d" : "u") + std::string{failure->what()}
              : "=" + found,
      0);
  if (failure) throw Error{failure->kind(), failure->what(), failure->where()};
  if (told[0] == '=') return told.substr(1);
  throw Error{told[0] == 'd' ? ErrorKind::data : ErrorKind::usage, told.substr(1)};
}

/// Path, id and names one after another, each with a zero byte behind it.
std::string start_text(const fs::path& run_dir, const std::string& path, const std::string& fresh) {
  const std::string end(1, '\0');
  std::error_code error;
  if (!fs::is_directory(path, error)) return path + end + fresh + end;  // weights alone
  const auto moment = moment_of(path);  // what is damaged shows when it is read
  const std::string training = moment ? moment->training : "";
  std::string text = path + end + training + end;
  for (const auto& [folder, other] : checkpoints_in(run_dir / "checkpoints")) {
    if (moment && other.training == training) text += folder.stem().string() + end;
  }
  return text;
}

}  // namespace

std::string choose_checkpoint(Group& group, const std::string& run_dir,
                              const std::string& ckpt_path) {
  if (ckpt_path.empty()) return "";
  return told_by_rank_0(group, [&] { return choose(run_dir, ckpt_path).string(); });
}

FitStart choose_start(Group& group, const std::string& run_dir, const std::string& ckpt_path,
                      const std::string& fresh) {
  if (ckpt_path.empty()) return {.training = fresh};
  const std::string told = told_by_rank_0(
      group, [&] { return start_text(run_dir, choose(run_dir, ckpt_path).string(), fresh); });
  std::vector<std::string> parts;
  for (size_t at = 0; at < told.size(); at = told.find('\0', at) + 1) {
    parts.push_back(told.substr(at, told.find('\0', at) - at));
  }
  return {.ckpt_path = parts.at(0),
          .training = parts.at(1),
          .checkpoints = {parts.begin() + 2, parts.end()}};
}

}  // namespace muster
