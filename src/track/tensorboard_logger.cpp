#include "src/track/event_file_internal.h"
#include "src/track/events_internal.h"
#include "src/track/image_groups_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/track/tensorboard_logger.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace muster {

namespace {

double system_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Samples of one tag share a size.
bool same_call_and_size(const ImageRecord& a, const ImageRecord& b) {
  return track::same_call(a, b) && a.width == b.width && a.height == b.height;
}

class TensorBoardLogger final : public Logger {
 public:
  explicit TensorBoardLogger(TensorBoardOptions options)
      : clock_{options.clock ? std::move(options.clock) : system_clock_seconds},
        file_{options.dir, clock_()} {
    file_.append(track::version_event(clock_()));
  }

  void log_hyperparameters(std::string_view config_json) override {
    log_text("hyperparameters", 0, "```json\n" + std::string{config_json} + "\n```");
  }

  void log_metrics(const MetricsRow& row) override {
    auto values = row.values;
    const auto named_epoch = [](const auto& value) { return value.first == "epoch"; };
    if (std::none_of(values.begin(), values.end(), named_epoch)) {
      values.emplace_back("epoch", static_cast<double>(row.epoch));
    }
    append(track::scalars_event(clock_(), row.step, values));
  }

  void log_images(std::span<const ImageRecord> images) override {
    constexpr auto any_number = std::numeric_limits<size_t>::max();
    for (const auto group : track::runs_of(images, any_number, same_call_and_size)) {
      std::vector<std::string> pngs;
      for (const auto& image : group) {
        pngs.push_back(read_file(image.file));
      }
      const auto& first = group.front();
      append(track::images_event(clock_(), first.step,
                                 first.key + "/" + std::to_string(first.index), group, pngs));
    }
  }

  void log_text(std::string_view key, int64_t step, std::string_view text) override {
    append(track::text_event(clock_(), step, std::string{key} + "/text_summary", text));
  }

  void go_on(std::string_view /*position*/, int64_t step) override {
    append(track::session_start_event(clock_(), step + 1));
  }

  void finish(int /*exit_code*/) override {
    file_.sync();
    finished_ = true;
  }

 private:
  void append(const std::string& event) {
    check(!finished_, "the TensorBoard run has been finished; nothing more can be logged");
    file_.append(event);
  }

  std::function<double()> clock_;
  track::EventFile file_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Logger> make_tensorboard_logger(TensorBoardOptions options) {
  return std::make_unique<TensorBoardLogger>(std::move(options));
}

}  // namespace muster
