#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::track {

/// A name and its value as W&B's JSON (NaN and Infinity stand bare).
struct WandbItem {
  std::string key;
  std::string json;
};

/// One record of a .wandb file, before it has a number: the field of `Record` that it fills, and
/// its message. Texts in a record must be UTF-8 (protobuf's rule); the functions below see to it.
struct WandbRecord {
  uint32_t field;
  std::string body;
};

struct WandbRun {
  std::string id{};
  std::string entity{};
  std::string project{};
  std::string group{};
  std::string name{};
  std::string host{};
  double start = 0;  ///< Unix time in seconds
};

WandbRecord wandb_header(std::string_view producer);
WandbRecord wandb_run(const WandbRun& run);
/// Names `name` as a metric of its own.
WandbRecord wandb_defined_metric(std::string_view name);
/// Makes `step_metric` the x axis of every other metric.
WandbRecord wandb_step_metric(std::string_view step_metric);
WandbRecord wandb_config(const std::vector<WandbItem>& items);
WandbRecord wandb_history(const std::vector<WandbItem>& items, int64_t step);
WandbRecord wandb_summary(const std::vector<WandbItem>& items);
/// `path` is relative to the run's files/; the file must be whole already.
WandbRecord wandb_media_file(std::string_view path);
WandbRecord wandb_exit(int exit_code, double runtime_seconds);

/// The protobuf message `Record`.
std::string serialize(const WandbRecord& record, int64_t number, std::string_view run_id);

}  // namespace muster::track
