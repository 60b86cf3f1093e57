#pragma once

#include <muster/io/safetensors.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// What a checkpoint folder holds: `model.safetensors`, other files, `training.txt` with the id of
/// its training where that is known, `tensors.sha256` with the SHA-256 of each tensor in the
/// safetensors files, and `manifest.json` that names each file with size and SHA-256.
struct CheckpointContent {
  int64_t global_step = 0;  ///< from 0
  int64_t epoch = 0;        ///< from 0
  /// Names the training that wrote it, as `is_training_id` wants it; "": not known.
  std::string training{};
  /// Parameters and buffers by the names of Python's `state_dict`. Read back they lie on the CPU in
  /// the order of the file.
  NamedTensors model{};
  /// Other files by name ("optimizer.safetensors", "state.json"): their bytes.
  std::map<std::string, std::string> files{};
};

/// Whether `text` can name a training: 32 lower-case hexadecimal digits.
bool is_training_id(std::string_view text);

/// Writes `folder` (…/checkpoints/NAME.ckpt) under a hidden name beside it and commits it by
/// rename, after fsync of every file and folder; makes missing folders above it.
///
/// An existing one is replaced: atomically where the file system can exchange two folders (ext4,
/// xfs, btrfs, tmpfs); elsewhere (NFS) there is an instant in which the name is free. What dead
/// processes left unfinished beside it is removed; several processes may write there.
///
/// Error of kind `output` or `io`, of kind `usage` for content that cannot be written; what was
/// there stays then.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content);

/// Reads and verifies one; files that its manifest does not name are passed over. `folder` may be a
/// link. Error of kind `usage` when there is none, `data` that names the file when one is missing,
/// of another size or digest, and the tensor where one is damaged.
CheckpointContent read_checkpoint(const std::filesystem::path& folder);

/// Its model alone, verified the same way.
NamedTensors read_checkpoint_model(const std::filesystem::path& folder);

/// In which training a checkpoint was written, and when.
struct CheckpointMoment {
  int64_t global_step = 0;
  int64_t epoch = 0;
  std::string training{};  ///< "": not known
};

/// Of the checkpoint `folder`, by its manifest and training.txt alone; nothing where there is none,
/// as in a file of weights. Error of kind `data` for a manifest that is none.
std::optional<CheckpointMoment> checkpoint_moment(const std::filesystem::path& folder);

/// Error of kind `output` where a folder stands in the place of such a link.
void check_place_of_link(const std::filesystem::path& link);

/// Makes `link` (last.ckpt, best.ckpt) point to `folder` beside it, atomically; a link that is
/// there is replaced. Error of kind `usage` when there is no such folder beside it, `output` when
/// it cannot be made.
void point_to_checkpoint(const std::filesystem::path& link, const std::filesystem::path& folder);

}  // namespace muster
