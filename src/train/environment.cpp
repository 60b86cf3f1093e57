#include <muster/train/environment.h>

#include <muster/base/env.h>
#include <muster/base/json_writer.h>
#include <muster/base/thread_pool.h>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/native/CPUBlas.h>
#include <torch/csrc/api/include/torch/version.h>

#include <fstream>
#include <string_view>

namespace muster {

namespace {

/// The processor's name as the kernel gives it; "unknown" elsewhere.
std::string processor() {
  std::ifstream info{"/proc/cpuinfo"};
  std::string line;
  while (std::getline(info, line)) {
    constexpr std::string_view field = "model name";
    const auto colon = line.find(": ");
    if (line.starts_with(field) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

}  // namespace

int cores_of_this_rank() {
  const auto job = env_integer("WORLD_SIZE", 1).value_or(1);
  return cores_for_rank(static_cast<int>(env_integer("LOCAL_WORLD_SIZE", 1).value_or(job)));
}

std::string environment_json(int world_size) {
  JsonWriter json{2};
  json.begin_object()
      .key("processor")
      .value(processor())
      .key("instruction_set")
      .value(at::get_cpu_capability())
      .key("torch")
      .value(TORCH_VERSION)
      .key("threads")
      .value(at::get_num_threads())
      .key("devices")
      .value("cpu")
      .key("world_size")
      .value(world_size)
      .end_object();
  return json.text() + "\n";
}

void set_compute_threads(int64_t threads) {
  at::set_num_threads(threads > 0 ? static_cast<int>(threads) : cores_of_this_rank());
}

}  // namespace muster
