#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>

#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "src/io/checkpoint_manifest_internal.h"
#include "src/io/saving_folder_internal.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr const char* model_name = "model.safetensors";
constexpr const char* manifest_name = "manifest.json";
constexpr const char* digests_name = "tensors.sha256";
constexpr const char* training_name = "training.txt";

/// "a/b/" is "a/b".
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

/// Step and epoch stand in the model file too, where the manifest's digest covers them: so a
/// manifest that was damaged shows.
NamedTexts model_metadata(int64_t global_step, int64_t epoch) {
  return {{"format", "pt"},
          {"global_step", std::to_string(global_step)},
          {"epoch", std::to_string(epoch)}};
}

/// Names of files that are written from the other members of CheckpointContent.
bool is_ours(std::string_view name) {
  return name == model_name || name == manifest_name || name == digests_name ||
         name == training_name;
}

bool holds_tensors(std::string_view name) { return name.ends_with(".safetensors"); }

/// A line for each tensor of a file: its digest, the file's name, its own.
std::string digest_lines(const std::string& name, std::string_view bytes) {
  std::string lines;
  for (const auto& [tensor, digest] : safetensors_digests(bytes, name)) {
    lines += format("{} {} {}\n", digest, name, tensor);
  }
  return lines;
}

/// ": tensor 'net.weight' is not the one that was written", or "" where that cannot be told.
std::string damaged_tensor(const fs::path& path, std::string_view bytes) {
  try {
    const std::string name = path.filename().string();
    const std::string lines = read_file(path.parent_path() / digests_name);
    for (const auto& [tensor, digest] : safetensors_digests(bytes, path.native())) {
      if (lines.find(format("{} {} {}\n", digest, name, tensor)) == std::string::npos) {
        return format(": tensor '{}' is not the one that was written", tensor);
      }
    }
  } catch (const Error&) {
    return "";
  }
  return "";
}

/// The bytes of a file that is as the manifest says.
std::string verified(const fs::path& path, const CheckpointManifest::File& expected) {
  const auto& name = path.native();
  std::error_code error;
  const auto size = fs::file_size(path, error);
  check(!error, ErrorKind::data, "{} cannot be read, and {} names it: {}", name, manifest_name,
        error.message());
  check(size == expected.size, ErrorKind::data, "{} has {} bytes, and {} says {}: it is damaged",
        name, size, manifest_name, expected.size);
  auto bytes = read_file(path, size);
  if (sha256_hex(bytes) != expected.sha256) {
    fail(ErrorKind::data, "{} is damaged: its SHA-256 is not the one in {}{}", name, manifest_name,
         holds_tensors(name) ? damaged_tensor(path, bytes) : "");
  }
  return bytes;
}

CheckpointManifest read_manifest(const fs::path& folder) {
  constexpr uint64_t most = 16'000'000;
  const auto path = folder / manifest_name;
  std::error_code error;
  check(fs::exists(path, error), ErrorKind::data, "{} is missing: {} is no whole checkpoint",
        path.native(), folder.native());
  auto manifest = parse_manifest(read_file(path, most), path.native());
  check(manifest.files.contains(model_name), ErrorKind::data, "{} does not name {}", path.native(),
        model_name);
  return manifest;
}

/// The id in the bytes of training.txt, which were verified.
std::string training_in(std::string text, const fs::path& path) {
  check(text.ends_with('\n') && is_training_id(text.substr(0, text.size() - 1)), ErrorKind::data,
        "{} has no id of a training: expected 32 hexadecimal digits", path.native());
  text.pop_back();
  return text;
}

/// The file was verified.
NamedTensors model_of(const fs::path& folder, const CheckpointManifest& manifest) {
  auto model = load_safetensors(folder / model_name);
  check(model.metadata == model_metadata(manifest.global_step, manifest.epoch), ErrorKind::data,
        "{}: step {} and epoch {} are not those in {}: it is damaged",
        (folder / manifest_name).native(), manifest.global_step, manifest.epoch, model_name);
  return std::move(model.tensors);
}

}  // namespace

bool is_training_id(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void write_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  check(content.global_step >= 0 && content.epoch >= 0,
        "A checkpoint's step is {} and its epoch {}; expected numbers from 0", content.global_step,
        content.epoch);
  check(content.training.empty() || is_training_id(content.training),
        "A checkpoint's training cannot be called '{}'; expected 32 hexadecimal digits",
        content.training);
  for (const auto& [name, bytes] : content.files) {
    check(is_file_name(name) && !is_ours(name), "A file of a checkpoint cannot be called '{}'",
          name);
  }
  SavingFolder saving{without_slash(folder)};
  CheckpointManifest manifest{.global_step = content.global_step, .epoch = content.epoch};
  std::string digests;
  const auto add = [&](const std::string& name, std::string_view bytes) {
    if (holds_tensors(name)) digests += digest_lines(name, bytes);
    write_file_atomically(saving.path() / name, bytes);
    manifest.files[name] = {.size = bytes.size(), .sha256 = sha256_hex(bytes)};
  };
  add(model_name,
      safetensors_bytes(content.model, model_metadata(content.global_step, content.epoch)));
  for (const auto& [name, bytes] : content.files) {
    add(name, bytes);
  }
  add(digests_name, digests);
  if (!content.training.empty()) {
    add(training_name, content.training + "\n");
  }
  write_file_atomically(saving.path() / manifest_name, manifest_json(manifest));
  saving.commit();
}

CheckpointContent read_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  check(fs::is_directory(folder, ignored), "There is no checkpoint {}: expected a folder",
        folder.native());
  const auto manifest = read_manifest(folder);
  CheckpointContent content{.global_step = manifest.global_step, .epoch = manifest.epoch};
  for (const auto& [name, file] : manifest.files) {
    auto bytes = verified(folder / name, file);
    if (name == training_name) {
      content.training = training_in(std::move(bytes), folder / name);
    } else if (!is_ours(name)) {
      content.files[name] = std::move(bytes);
    }
  }
  content.model = model_of(folder, manifest);
  return content;
}

NamedTensors read_checkpoint_model(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  static_cast<void>(verified(folder / model_name, manifest.files.at(model_name)));
  return model_of(folder, manifest);
}

std::optional<CheckpointMoment> checkpoint_moment(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / manifest_name, ignored)) {
    return std::nullopt;
  }
  const auto manifest = read_manifest(folder);
  CheckpointMoment moment{.global_step = manifest.global_step, .epoch = manifest.epoch};
  const auto named = manifest.files.find(training_name);
  const auto path = folder / training_name;
  // A model alone is evaluated without it.
  if (named != manifest.files.end() && fs::exists(path, ignored)) {
    moment.training = training_in(verified(path, named->second), path);
  }
  return moment;
}

void check_place_of_link(const fs::path& link) {
  std::error_code ignored;
  check(!fs::is_directory(fs::symlink_status(link, ignored)), ErrorKind::output,
        "cannot create the link {}: there is a folder of that name: remove it", link.native());
}

void point_to_checkpoint(const fs::path& link, const fs::path& folder) {
  const auto target = without_slash(folder);
  std::error_code ignored;
  check(fs::is_directory(target, ignored), "There is no checkpoint {} that {} could point to",
        target.native(), link.native());
  check(fs::equivalent(target.parent_path() / ".", link.parent_path() / ".", ignored) &&
            target.filename() != link.filename(),
        "{} cannot point to {}: expected a folder beside it, of another name", link.native(),
        target.native());
  check_place_of_link(link);
  const auto unfinished = unfinished_name(link);
  if (symlink(target.filename().c_str(), unfinished.c_str()) != 0) {
    fail_output("create the link", link, errno);
  }
  rename_for_good(unfinished, link);
}

}  // namespace muster
