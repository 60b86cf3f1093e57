#include "src/track/image_groups_internal.h"
#include "src/track/json_members_internal.h"
#include "src/track/wandb_files_internal.h"
#include "src/track/wandb_log_internal.h"
#include "src/track/wandb_records_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>
#include <muster/track/wandb_logger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <random>
#include <unordered_map>

namespace muster {

namespace {

using track::WandbItem;
using track::WandbRecord;

constexpr std::string_view global_step = "trainer/global_step";
constexpr size_t most_images_in_a_list = 108;  // W&B shows no more of one list

double system_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string random_id() {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device source;
  std::uniform_int_distribution<size_t> letter{0, letters.size() - 1};
  std::string id;
  for (int i = 0; i < 8; ++i) {
    id += letters[letter(source)];
  }
  return id;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Local time as YYYYMMDD_HHMMSS.
std::string folder_time(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%d_%H%M%S", &local)};
}

void check_id(const std::string& id) {
  const bool allowed = std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  check(allowed && id.size() <= 128,
        "the W&B run id '{}' may have at most 128 characters of [A-Za-z0-9_-]", id);
}

class WandbLogger final : public Logger {
 public:
  explicit WandbLogger(WandbOptions options) : options_{std::move(options)} {
    if (options_.id.empty()) {
      options_.id = random_id();
    }
    check_id(options_.id);
    if (!options_.clock) {
      options_.clock = system_clock_seconds;
    }
    start_ = options_.clock();
    const std::string folder = "offline-run-" + folder_time(start_) + "-" + options_.id;
    const auto wandb = options_.dir / "wandb";
    folder_ = wandb / folder;
    make_folder(folder_ / "files");
    log_.emplace(folder_ / ("run-" + options_.id + ".wandb"));
    point_latest_run(wandb, folder);
    write(track::wandb_header(options_.producer));
    write(track::wandb_run({.id = options_.id,
                            .entity = options_.entity,
                            .project = options_.project,
                            .group = options_.group,
                            .name = options_.name,
                            .host = host_name(),
                            .start = start_}));
    write(track::wandb_defined_metric(global_step));
    write(track::wandb_step_metric(global_step));
  }

  void log_hyperparameters(std::string_view config_json) override {
    for (const auto& member : track::json_members(config_json, "the configuration for W&B")) {
      config_.push_back({member.name, track::json_on_one_line(member.raw)});
    }
    if (!config_.empty()) {
      write(track::wandb_config(config_));
    }
  }

  void log_metrics(const MetricsRow& row) override {
    std::vector<WandbItem> items;
    const auto named_epoch = [](const auto& value) { return value.first == "epoch"; };
    if (std::none_of(row.values.begin(), row.values.end(), named_epoch)) {
      items.push_back({"epoch", std::to_string(row.epoch)});
    }
    for (const auto& [name, value] : row.values) {
      items.push_back({checked_key(name), shortest(value)});
    }
    write_row(row.step, std::move(items));
  }

  void log_images(std::span<const ImageRecord> images) override {
    for (const auto group : track::runs_of(images, most_images_in_a_list, track::same_call)) {
      write_image_list(group);
    }
  }

  void log_text(std::string_view key, int64_t step, std::string_view text) override {
    write_row(step, {{checked_key(key), json_string(text)}});
  }

  [[nodiscard]] std::string position() const override { return options_.id; }

  /// Runs of one training name the one before: W&B uploads an offline run as a whole, and a second
  /// one of the same id would take the place of the first.
  void go_on(std::string_view position, int64_t step) override {
    if (position.empty()) {
      return;  // the checkpoint's training had no W&B run
    }
    JsonWriter from{0};
    from.begin_object().key("run").value(position).key("global_step").value(step).end_object();
    config_.push_back({"resumed_from", from.text()});
    write(track::wandb_config({config_.back()}));
  }

  void finish(int exit_code) override {
    write_file_atomically(folder_ / "files" / "config.yaml", track::wandb_config_yaml(config_));
    write_file_atomically(folder_ / "files" / "wandb-summary.json",
                          track::wandb_summary_json(summary_));
    write(track::wandb_exit(exit_code, options_.clock() - start_));
    log_->sync();
    finished_ = true;
  }

 private:
  void write(const WandbRecord& record) {
    check(!finished_, "the W&B run {} has been finished; nothing more can be logged", options_.id);
    log_->append(track::serialize(record, next_number_, options_.id));
    ++next_number_;
  }

  /// A history record and the summary record with the same values.
  void write_row(int64_t step, std::vector<WandbItem> values) {
    const double now = options_.clock();
    std::vector<WandbItem> items{{"_step", std::to_string(next_step_)},
                                 {"_runtime", shortest(now - start_)},
                                 {"_timestamp", shortest(now)},
                                 {std::string{global_step}, std::to_string(step)}};
    std::move(values.begin(), values.end(), std::back_inserter(items));
    write(track::wandb_history(items, next_step_));
    ++next_step_;
    write(track::wandb_summary(items));
    for (auto& item : items) {
      const auto [place, is_new] = summary_places_.try_emplace(item.key, summary_.size());
      if (is_new) {
        summary_.push_back(std::move(item));
      } else {
        summary_[place->second].json = std::move(item.json);
      }
    }
  }

  void write_image_list(std::span<const ImageRecord> images) {
    const std::string key = checked_key(images.front().key);
    JsonWriter list{0, JsonWriter::NonFinite::bare};
    list.begin_object().key("_type").value("images/separated");
    list.key("width").value(images.front().width).key("height").value(images.front().height);
    list.key("format").value("png").key("count").value(static_cast<int64_t>(images.size()));
    list.key("filenames").begin_list();
    std::vector<std::string> paths;
    for (const auto& image : images) {
      const auto path = track::wandb_image_path(key, next_step_, image.sha256);
      list.value(path);
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
        paths.push_back(path);
        place_file(image.file, path);
      }
    }
    list.end_list().key("captions").begin_list();
    for (const auto& image : images) {
      list.value(image.caption);
    }
    list.end_list().end_object();
    write_row(images.front().step, {{key, list.text()}});
  }

  /// Equal pictures of one row share one file.
  void place_file(const std::string& source, const std::string& path) {
    const auto target = folder_ / "files" / path;
    make_folder(target.parent_path());
    link_or_copy(source, target);
    write(track::wandb_media_file(path));
  }

  static std::string checked_key(std::string_view key) {
    check(!key.empty() && key.find('\0') == std::string_view::npos,
          "what is logged to W&B needs a name without zero bytes; found '{}'", key);
    for (const std::string_view own : {"_step", "_runtime", "_timestamp", "trainer/global_step"}) {
      check(key != own, "'{}' is a name of W&B's own; log the value under another", key);
    }
    return valid_utf8(key);
  }

  static void point_latest_run(const std::filesystem::path& wandb, const std::string& folder) {
    const auto fresh = wandb / (".latest-" + folder);
    std::error_code failed;
    std::filesystem::remove(fresh, failed);
    std::filesystem::create_directory_symlink(folder, fresh, failed);
    if (!failed) {
      std::filesystem::rename(fresh, wandb / "latest-run", failed);
    }
    if (failed) {  // only a convenience: file systems without links do without it
      std::filesystem::remove(fresh, failed);
    }
  }

  WandbOptions options_;
  double start_ = 0;
  std::filesystem::path folder_;
  std::optional<track::WandbLog> log_;
  int64_t next_number_ = 1;
  int64_t next_step_ = 0;
  std::vector<WandbItem> config_;
  std::vector<WandbItem> summary_;
  std::unordered_map<std::string, size_t> summary_places_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Logger> make_wandb_logger(WandbOptions options) {
  return std::make_unique<WandbLogger>(std::move(options));
}

}  // namespace muster
