#include "run_writer_internal.h"

#include "spool_recovery_internal.h"

#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/redact.h>
#include <muster/base/unfinished.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/track/csv_logger.h>
#include <muster/track/report.h>
#include <muster/track/results.h>
#include <muster/track/tensorboard_logger.h>
#include <muster/track/wandb_logger.h>
#include <muster/train/environment.h>
#include <muster/value/redact.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace fs = std::filesystem;

namespace muster {

namespace {

/// Every text of 64 hexadecimal digits, such as names an image.
std::set<std::string_view> digests_in(std::string_view text) {
  constexpr size_t length = 64;
  constexpr std::string_view digits = "0123456789abcdef";
  std::set<std::string_view> found;
  for (size_t at = text.find_first_of(digits); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of(digits, at), text.size());
    if (end - at == length) {
      found.insert(text.substr(at, length));
    }
    at = text.find_first_of(digits, end);
  }
  return found;
}

bool all_of(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

/// "000012-name.png".
bool is_prediction(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto dash = name.find('-');
  return dash != std::string::npos && dash >= 6 && all_of(name.substr(0, dash), "0123456789");
}

/// "rank-1/00000012.png", and what stands beside it.
bool is_spooled(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.parent_path().filename().string().starts_with("rank-") &&
         (name == spooled_records || name == "outputs" || is_unfinished(path) ||
          (path.extension() == ".png" && all_of(path.stem().string(), "0123456789")));
}

/// "rank-1-of-2".
bool is_shard(const fs::path& path) { return path.filename().string().starts_with("rank-"); }

/// Removes the files below `folder` that `ours` knows as written by Muster, then the folders that
/// are empty. What somebody else put there stays.
template <typename Ours>
void remove_ours(const fs::path& folder, const Ours& ours) {
  std::error_code ignored;
  std::vector<fs::path> files;
  std::vector<fs::path> folders{folder};
  for (const auto& entry : fs::recursive_directory_iterator{folder, ignored}) {
    if (entry.is_directory() && !entry.is_symlink()) {
      folders.push_back(entry.path());
    } else if (ours(entry.path())) {
      files.push_back(entry.path());
    }
  }
  for (const auto& file : files) {
    fs::remove(file, ignored);
  }
  for (const auto& empty : std::ranges::reverse_view(folders)) {
    remove_if_empty(empty);
  }
}

std::array<fs::path, 2> checkpoint_links(const fs::path& run_dir) {
  return {run_dir / "checkpoints/last.ckpt", run_dir / "checkpoints/best.ckpt"};
}

/// What will be wanted after hours is tried at the start.
void try_to_write(const fs::path& folder) {
  const fs::path probe = folder / ".probe";
  write_file_atomically(probe, "", Durability::process);
  std::error_code ignored;
  fs::remove(probe, ignored);
  remove_if_empty(folder);
}

}  // namespace

RunWriter::RunWriter(const TrainerOptions& options)
    : options_{options}, run_dir_{options.run_dir} {}

void RunWriter::log_hyperparameters(const Value& config, const std::string& yaml) {
  check(!opened_ && !config_.is_dict(),
        "log_hyperparameters comes before the first stage and at most once");
  config_ = redacted(config);
  config_yaml_ = yaml;
}

void RunWriter::begin_stage(Stage stage, int world_size) {
  make_folder(run_dir_);
  lock_.reset();  // of a stage that failed
  lock_.emplace(run_dir_);
  check_results(run_dir_);
  for (const auto* folder : {"", "media", "tables", "predictions"}) {
    remove_unfinished(run_dir_ / folder);
  }
  if (const int64_t images = recover_spool(run_dir_); images > 0) {
    std::fprintf(stderr,
                 "muster: a run that ended early left %lld images that it had not logged yet; they "
                 "are in %s\n",
                 static_cast<long long>(images), (run_dir_ / "recovered").c_str());
  }
  remove_ours(run_dir_ / "spool", is_spooled);
  if (stage == Stage::predict) {
    remove_ours(run_dir_ / "predictions", is_prediction);
    remove_ours(run_dir_ / "prediction_shards", is_shard);
  }
  if (!config_yaml_.empty()) {
    write_file_atomically(run_dir_ / "config.yaml", config_yaml_);
  }
  write_file_atomically(run_dir_ / "environment.json", environment_json(world_size));
  if (stage == Stage::fit && options_.enable_checkpointing) {
    try_to_write(run_dir_ / "checkpoints");
    for (const auto& link : checkpoint_links(run_dir_)) {
      check_place_of_link(link);
    }
  }
  open_loggers();
  training_ = {.report = {.stage = stage == Stage::fit ? "fit" : ""}};
}

void RunWriter::open_loggers() {
  if (opened_ || !options_.logger) {
    return;
  }
  opened_ = true;
  loggers_.push_back(make_csv_logger({.run_dir = run_dir_}));
  loggers_.push_back(make_wandb_logger({.dir = run_dir_, .project = options_.project}));
  loggers_.push_back(make_tensorboard_logger({.dir = run_dir_ / "tensorboard"}));
  if (config_.is_dict()) {
    for (const auto& logger : loggers_) {
      logger->log_hyperparameters(to_json(config_));
    }
  }
}

void RunWriter::keep_images(std::vector<ImageRecord>& images) const {
  for (auto& image : images) {
    const fs::path target = run_dir_ / "media" / (image.sha256 + ".png");
    make_folder(target.parent_path());
    link_or_copy(image.file, target);
    std::error_code ignored;
    fs::remove(image.file, ignored);
    image.file = target.string();
  }
}

void RunWriter::drop_unnamed_images() const {
  const fs::path media = run_dir_ / "media";
  std::error_code none;
  if (!fs::is_directory(media, none)) {
    return;
  }
  const std::string results = read_file_if_there(run_dir_ / "results.json").value_or("");
  const auto named = digests_in(results);
  remove_ours(media, [&named](const fs::path& path) {
    const std::string digest = path.stem().string();
    return path.extension() == ".png" && is_sha256_hex(digest) && !named.contains(digest);
  });
}

void RunWriter::log(EpochResult& result) {
  keep_images(result.images);
  MetricsRow row{.step = result.report.step, .epoch = result.report.epoch};
  for (const auto& [name, value] : result.report.metrics) {
    if (value) {
      row.values.emplace_back(name, *value);
    }
  }
  for (const auto& logger : loggers_) {
    if (!row.values.empty()) {
      logger->log_metrics(row);
    }
    if (!result.images.empty()) {
      logger->log_images(result.images);
    }
    for (const auto& table : result.tables) {
      logger->log_table(table);
    }
    for (const auto& text : result.texts) {
      logger->log_text(text.key, result.report.step, text.text);
    }
  }
}

void RunWriter::replace_tables(const EpochResult& result) const {
  remove_stage_tables(run_dir_, result.report.stage);
  for (const auto& table : result.tables) {
    write_table(run_dir_, table);
  }
}

void RunWriter::begin_training() {
  bool is_used = false;
  for (const auto& link : checkpoint_links(run_dir_)) {
    std::error_code ignored;
    is_used = (options_.enable_checkpointing && fs::remove(link, ignored)) || is_used;
  }
  if (is_used) {
    std::fprintf(
        stderr,
        "muster: %s holds an earlier training: its checkpoints stay, but 'last' and 'best' "
        "will be this one's, and its rows in metrics.csv come before this one's\n",
        run_dir_.c_str());
  }
}

void RunWriter::publish(EpochResult& result) {
  replace_tables(result);
  log(result);
  replace_stage(run_dir_, result.report, result.images);
  if (training_.report.stage.empty()) {
    publish_report();
  } else {  // the training it belongs to goes on
    replace_stage(run_dir_, training_.report, training_.images);
    publish_report_if_cheap();
  }
}

void RunWriter::log_training(EpochResult& result) {
  if (!result.tables.empty()) {
    replace_tables(result);
  }
  log(result);
  training_.report.step = result.report.step;
  for (const auto& [name, value] : result.report.metrics) {
    const auto found =
        std::find_if(training_.report.metrics.begin(), training_.report.metrics.end(),
                     [&, key = name](const auto& item) { return item.first == key; });
    if (found == training_.report.metrics.end()) {
      training_.report.metrics.emplace_back(name, value);
    } else if (value) {  // what the loggers show as the last one
      found->second = value;
    }
  }
  training_.images.insert(training_.images.end(), result.images.begin(), result.images.end());
}

Value RunWriter::state() const {
  Value::List loggers;
  for (const auto& logger : loggers_) {
    loggers.emplace_back(logger->position());
  }
  Value::List images;
  for (const auto& image : training_.images) {
    images.emplace_back(Value::List{image.key, image.step, image.index, image.caption, image.width,
                                    image.height, image.sha256});
  }
  return Value::Dict{{"loggers", std::move(loggers)}, {"images", std::move(images)}};
}

void RunWriter::continue_training(std::vector<std::pair<std::string, std::optional<double>>> latest,
                                  const Value& state, int64_t step, bool is_own) {
  training_.report.metrics = std::move(latest);
  for (const auto& item : state.at("images").as_list()) {
    const auto& v = item.as_list();
    ImageRecord image{.key = v.at(0).as_string(),
                      .step = v.at(1).as_int(),
                      .index = v.at(2).as_int(),
                      .caption = v.at(3).as_string(),
                      .width = v.at(4).as_int(),
                      .height = v.at(5).as_int(),
                      .sha256 = v.at(6).as_string()};
    image.file = (run_dir_ / "media" / (image.sha256 + ".png")).string();
    if (fs::is_regular_file(image.file)) {  // not those of another run folder
      training_.images.push_back(std::move(image));
    }
  }
  const auto& positions = state.at("loggers").as_list();
  for (size_t i = 0; is_own && i < loggers_.size() && i < positions.size(); ++i) {
    loggers_[i]->go_on(positions[i].as_string(), step);
  }
}

void RunWriter::publish_training(int64_t epochs, int64_t steps) {
  training_.report.epoch = epochs;
  training_.report.step = steps;
  replace_stage(run_dir_, training_.report, training_.images);
  publish_report_if_cheap();
}

void RunWriter::publish_report_if_cheap() {
  constexpr int share = 20;  // at most one part in so many of a training's time
  const auto start = std::chrono::steady_clock::now();
  if (start >= next_report_) {
    publish_report();
    const auto end = std::chrono::steady_clock::now();
    next_report_ = end + share * (end - start);
  }
}

void RunWriter::publish_report() {
  drop_unnamed_images();
  write_report(run_dir_);
}

void RunWriter::end_stage() {
  remove_ours(run_dir_ / "spool", is_spooled);
  lock_.reset();
}

void RunWriter::close(int exit_code) noexcept {
  bool told = false;
  for (const auto& logger : std::exchange(loggers_, {})) {
    try {
      logger->finish(exit_code);
    } catch (const std::exception& error) {  // the others' runs end all the same
      if (!std::exchange(told, true)) {
        std::fprintf(stderr, "muster: the loggers were not closed: %s\n",
                     redact_text(error.what()).c_str());
      }
    }
  }
}

}  // namespace muster
