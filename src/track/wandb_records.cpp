#include "src/track/wandb_records_internal.h"

#include <muster/base/text.h>

#include <cmath>
#include <protozero/pbf_writer.hpp>

namespace muster::track {

namespace {

// Field numbers of wandb_internal.proto, unchanged from release 0.22 to 0.31.
namespace record {
enum : uint32_t {
  number = 1,
  history = 2,
  summary = 3,
  config = 5,
  files = 6,
  metric = 12,
  run = 17,
  exit = 18,
  header = 21,
  info = 200
};
}  // namespace record

constexpr uint32_t value_json = 16;  // of ConfigItem, HistoryItem and SummaryItem
constexpr uint32_t step_metric_field = 4;
constexpr uint32_t options_field = 6;

void add_text(protozero::pbf_writer& writer, uint32_t field, std::string_view text) {
  if (!text.empty()) {
    writer.add_string(field, valid_utf8(text));
  }
}

/// Config, history and summary alike: repeated items of a key and a JSON text in field 1.
std::string item_list(const std::vector<WandbItem>& items) {
  std::string body;
  protozero::pbf_writer writer{body};
  for (const auto& item : items) {
    protozero::pbf_writer entry{writer, 1};
    entry.add_string(1, valid_utf8(item.key));
    entry.add_string(value_json, item.json);
  }
  return body;
}

}  // namespace

WandbRecord wandb_header(std::string_view producer) {
  std::string body;
  protozero::pbf_writer writer{body};
  {
    protozero::pbf_writer version{writer, 1};
    add_text(version, 1, producer);
    version.add_string(2, "0.70.0");  // the oldest consumer, as the real core writes it
  }
  return {record::header, body};
}

WandbRecord wandb_run(const WandbRun& run) {
  std::string body;
  protozero::pbf_writer writer{body};
  add_text(writer, 1, run.id);
  add_text(writer, 2, run.entity);
  add_text(writer, 3, run.project);
  add_text(writer, 6, run.group);
  add_text(writer, 8, run.name);
  add_text(writer, 13, run.host);
  {
    const double seconds = std::floor(run.start);
    protozero::pbf_writer start{writer, 17};
    start.add_int64(1, static_cast<int64_t>(seconds));
    start.add_int32(2, static_cast<int32_t>((run.start - seconds) * 1e9));
  }
  return {record::run, body};
}

WandbRecord wandb_defined_metric(std::string_view name) {
  std::string body;
  protozero::pbf_writer writer{body};
  add_text(writer, 1, name);
  {
    protozero::pbf_writer options{writer, options_field};
    options.add_bool(3, true);
  }
  return {record::metric, body};
}

WandbRecord wandb_step_metric(std::string_view step_metric) {
  std::string body;
  protozero::pbf_writer writer{body};
  writer.add_string(2, "*");
  add_text(writer, step_metric_field, step_metric);
  {
    protozero::pbf_writer options{writer, options_field};
    options.add_bool(1, true);
    options.add_bool(3, true);
  }
  return {record::metric, body};
}

WandbRecord wandb_config(const std::vector<WandbItem>& items) {
  return {record::config, item_list(items)};
}

WandbRecord wandb_history(const std::vector<WandbItem>& items, int64_t step) {
  std::string body = item_list(items);
  protozero::pbf_writer writer{body};
  std::string number;
  if (step != 0) {
    protozero::pbf_writer{number}.add_int64(1, step);
  }
  writer.add_message(2, number);  // step 0 is an empty message, not an absent one
  return {record::history, body};
}

WandbRecord wandb_summary(const std::vector<WandbItem>& items) {
  return {record::summary, item_list(items)};
}

WandbRecord wandb_media_file(std::string_view path) {
  std::string body;
  protozero::pbf_writer writer{body};
  {
    protozero::pbf_writer file{writer, 1};
    add_text(file, 1, path);
    file.add_enum(3, 2);  // a media file; its policy, at once, is the default
  }
  return {record::files, body};
}

WandbRecord wandb_exit(int exit_code, double runtime_seconds) {
  std::string body;
  protozero::pbf_writer writer{body};
  if (exit_code != 0) {
    writer.add_int32(1, exit_code);
  }
  if (runtime_seconds >= 1) {
    writer.add_int32(2, static_cast<int32_t>(runtime_seconds));
  }
  return {record::exit, body};
}

std::string serialize(const WandbRecord& record, int64_t number, std::string_view run_id) {
  std::string bytes;
  protozero::pbf_writer writer{bytes};
  writer.add_int64(record::number, number);
  writer.add_message(record.field, record.body);
  {
    protozero::pbf_writer info{writer, record::info};
    add_text(info, 1, run_id);
  }
  return bytes;
}

}  // namespace muster::track
