#include "monitor_internal.h"
#include "progress_bar_internal.h"

#include <muster/base/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

/// "0:07", "3:20" or "1:02:03".
std::string clock_text(double seconds) {
  const int64_t total = std::llround(std::max(0.0, seconds));
  const int64_t hours = total / 3600;
  const int64_t minutes = total / 60 % 60;
  return hours > 0 ? format("{}:{:02}:{:02}", hours, minutes, total % 60)
                   : format("{}:{:02}", minutes, total % 60);
}

std::string bar(double fraction, int width) {
  // Eighths of a cell, so that slow epochs still show movement.
  static constexpr const char* parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(fraction * width * 8);
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) {
    out += "█";
  }
  out += parts[eighths % 8];
  const int used = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  out.append(static_cast<size_t>(std::max(0, width - used)), ' ');
  return out;
}

using Values = std::vector<std::pair<std::string, std::optional<double>>>;

/// ", train/loss 0.0123, val/loss 0.02": the first ones.
std::string text_of(const Values& values) {
  static constexpr int most = 3;
  std::string text;
  int count = 0;
  for (const auto& [name, value] : values) {
    if (value && count < most) {
      text += format(", {} {:.4g}", name, *value);
      ++count;
    }
  }
  return text;
}

/// Speed and lines of one loop over batches.
struct Meter {
  Clock::time_point start{};  // of the epoch
  int64_t loader = -1;
  Clock::time_point loader_start{};
  int64_t first = 0;  // batches of the loader that were done before
  Clock::time_point last{};
  Clock::time_point next{};  // no line before
  Clock::duration gap{};

  [[nodiscard]] double seconds(Clock::time_point now) const {
    return std::chrono::duration<double>(now - start).count();
  }
};

class ProgressBar final : public Callback {
 public:
  explicit ProgressBar(std::FILE* out) : out_{out}, terminal_{isatty(fileno(out)) == 1} {}

  void on_epoch_start(const Progress& progress) override {
    Meter& meter = meter_of(progress);
    meter = {.start = Clock::now(), .first = progress.done};
    if (progress.stage == Stage::fit) {
      validation_.clear();
      training_line_.clear();
    }
  }

  void on_batch_end(const Progress& progress) override {
    const auto now = Clock::now();
    Meter& meter = meter_of(progress);
    if (progress.loader != meter.loader) {
      meter.first = meter.loader < 0 ? meter.first : 0;
      meter.loader_start = meter.loader < 0 ? meter.start : meter.last;
      meter.next = meter.loader_start + (terminal_ ? Clock::duration{} : first_line);
      meter.gap = first_line;
      meter.loader = progress.loader;
    }
    meter.last = now;
    if (now < meter.next && !(terminal_ && !progress.is_within_epoch() && progress.batches >= 0)) {
      return;
    }
    if (!terminal_) {
      meter.gap = std::min(meter.gap * 2, longest_gap);
    }
    meter.next = now + (terminal_ ? redraw : meter.gap);
    draw(progress, meter);
  }

  void on_epoch_end(const Progress& progress, const Report& report) override {
    const auto now = Clock::now();
    if (progress.training != nullptr && progress.stage != Stage::fit) {
      validation_ = text_of(report.metrics);
      for (const auto& [name, value] : report.metrics) {
        of_validation_.insert(name);
      }
      // Training has not been slower for it.
      const auto pause = now - evaluation_.start;
      for (auto* time : {&training_.start, &training_.loader_start, &training_.next}) {
        *time += pause;
      }
      if (terminal_) {
        write("\r" + training_line_ + "\x1b[K");
      }
      return;
    }
    const double seconds = meter_of(progress).seconds(now);
    const double rate = seconds > 0 ? static_cast<double>(report.samples) / seconds : 0.0;
    const bool trained = progress.stage == Stage::fit;
    const std::string name =
        trained ? format("epoch {}", progress.epoch) : std::string{to_string(progress.stage)};
    write((terminal_ ? "\r\x1b[K" : "") +
          format("{}: {} samples in {:.1f} s ({:.1f} samples/s){}{}\n", name, report.samples,
                 seconds, rate, trained ? text_of(values_of_training(progress, report)) : "",
                 trained ? validation_ : ""));
  }

 private:
  static constexpr Clock::duration redraw = std::chrono::milliseconds{100};
  static constexpr Clock::duration first_line = std::chrono::seconds{2};
  static constexpr Clock::duration longest_gap = std::chrono::seconds{60};

  [[nodiscard]] Meter& meter_of(const Progress& progress) {
    return progress.stage == Stage::fit ? training_ : evaluation_;
  }

  /// Those of the epoch, then the latest ones of steps.
  [[nodiscard]] Values values_of_training(const Progress& progress, const Report& report) const {
    Values values = report.metrics;
    for (const auto& name : progress.training->metric_names()) {
      if (!of_validation_.contains(name) && !names(report, name)) {
        values.emplace_back(name, progress.training->metric(name));
      }
    }
    return values;
  }

  void draw(const Progress& progress, const Meter& meter) {
    const double seconds = std::chrono::duration<double>(meter.last - meter.loader_start).count();
    const bool is_sized = progress.batches >= 0;
    const double fraction = progress.batches > 0 ? static_cast<double>(progress.done) /
                                                       static_cast<double>(progress.batches)
                                                 : 1.0;
    const double rate =
        seconds > 0 ? static_cast<double>(progress.done - meter.first) / seconds : 0.0;
    const double left =
        rate > 0 ? static_cast<double>(progress.batches - progress.done) / rate : 0.0;
    std::string name = progress.stage == Stage::fit ? format("epoch {}", progress.epoch)
                                                    : std::string{to_string(progress.stage)};
    if (progress.loaders > 1) {
      name += format(" {}/{}", progress.loader + 1, progress.loaders);
    }
    std::string line = is_sized ? format("{} {:3.0f} %", name, 100 * fraction) : name;
    std::string tail =
        is_sized
            ? format(" {}/{} [{}<{}, {:.1f} batches/s", progress.done, progress.batches,
                     clock_text(seconds), clock_text(left), rate)
            : format(" {} batches [{}, {:.1f} batches/s", progress.done, clock_text(seconds), rate);
    const auto width = static_cast<size_t>(terminal_ ? columns() : 1000);
    for (const auto& [key, value] : progress.values) {
      const std::string shown = format(", {}={:.4g}", key, value);
      // A line that wraps would not renew itself.
      if (line.size() + tail.size() + shown.size() + 2 > width) {
        break;
      }
      tail += shown;
    }
    tail += "]";
    if (!terminal_) {
      write(line + tail + "\n");
      return;
    }
    const auto room = static_cast<int>(width) - static_cast<int>(line.size() + tail.size()) - 3;
    if (is_sized && room >= 4) {
      line += " " + bar(fraction, std::min(room, 40)) + "▏";
    }
    line += tail;
    write("\r" + line + "\x1b[K");
    if (progress.stage == Stage::fit) {
      training_line_ = line;
    }
  }

  [[nodiscard]] int columns() const {
    winsize size{};
    return ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  void write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  bool terminal_;
  Meter training_{};
  Meter evaluation_{};
  std::string training_line_{};
  std::string validation_{};  // values of the latest one of this epoch
  std::set<std::string> of_validation_{};
};

}  // namespace

std::shared_ptr<Callback> make_progress_bar(std::FILE* out) {
  return std::make_shared<ProgressBar>(out);
}

}  // namespace muster
