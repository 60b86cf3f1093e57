#include "replicas_internal.h"

#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/value/tensor.h>

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace muster {

namespace {

constexpr size_t digest_bytes = 32;

std::string digest_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kCPU).contiguous();
  const std::span bytes{static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()};
  return sha256_hex(bytes).substr(0, digest_bytes);
}

}  // namespace

void check_equal_parameters(Group& group, const NamedTensors& parameters, int64_t global_step) {
  if (group.size() == 1) {
    return;
  }
  std::string mine;
  for (const auto& [name, tensor] : parameters) {
    mine += digest_of(tensor);
  }
  const auto all = group.all_gather(mine);
  for (const auto& rank : all) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto digest = [i](const Contribution& of) {
        return std::string_view{of.bytes}.substr(i * digest_bytes, digest_bytes);
      };
      const auto& [name, tensor] = parameters[i];
      check(digest(rank) == digest(all[0]), ErrorKind::mismatch,
            "the ranks have come apart by step {}: rank {} has other values of '{}' ({}{}) than "
            "rank 0. Something has changed parameters on some ranks alone; go on from a checkpoint "
            "before that",
            global_step, rank.rank, name, dtype_name(tensor.scalar_type()),
            shape_text(tensor.sizes()));
    }
  }
}

void check_same_checkpoint(Group& group, const std::string& path) {
  if (group.size() == 1) {
    return;
  }
  const auto all =
      group.all_gather(sha256_hex(read_file(std::filesystem::path{path} / "manifest.json")));
  for (const auto& rank : all) {
    check(rank.bytes == all[0].bytes, ErrorKind::mismatch,
          "rank {} has read another checkpoint {} than rank 0; a folder of that name differs from "
          "host to host: copy rank 0's to all of them",
          rank.rank, path);
  }
}

}  // namespace muster
