#include "progress_bar_internal.h"

#include <muster/base/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

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

class ProgressBar final : public Callback {
 public:
  explicit ProgressBar(std::FILE* out) : out_{out}, terminal_{isatty(fileno(out)) == 1} {}

  void on_epoch_start(const Progress& /*progress*/) override {
    start_ = Clock::now();
    loader_ = -1;
  }

  void on_batch_end(const Progress& progress) override {
    const auto now = Clock::now();
    if (progress.loader != loader_) {
      loader_ = progress.loader;
      loader_start_ = loader_ == 0 ? start_ : last_;
      next_ = terminal_ ? loader_start_ : loader_start_ + first_line;
      gap_ = first_line;
    }
    last_ = now;
    if (now < next_ && !(terminal_ && progress.done == progress.batches)) {
      return;
    }
    if (!terminal_) {
      gap_ = std::min(gap_ * 2, longest_gap);
    }
    next_ = now + (terminal_ ? redraw : gap_);
    draw(progress, std::chrono::duration<double>(now - loader_start_).count());
  }

  void on_epoch_end(const Progress& progress, const Report& report) override {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double rate = seconds > 0 ? static_cast<double>(report.samples) / seconds : 0.0;
    write((terminal_ ? "\r\x1b[K" : "") + format("{}: {} samples in {:.1f} s ({:.1f} samples/s)\n",
                                                 to_string(progress.stage), report.samples, seconds,
                                                 rate));
  }

 private:
  static constexpr Clock::duration redraw = std::chrono::milliseconds{100};
  static constexpr Clock::duration first_line = std::chrono::seconds{2};
  static constexpr Clock::duration longest_gap = std::chrono::seconds{60};

  void draw(const Progress& progress, double seconds) {
    const double done = static_cast<double>(progress.done);
    const double fraction =
        progress.batches > 0 ? done / static_cast<double>(progress.batches) : 1.0;
    const double rate = seconds > 0 ? done / seconds : 0.0;
    const double left =
        rate > 0 ? static_cast<double>(progress.batches - progress.done) / rate : 0.0;
    std::string name{to_string(progress.stage)};
    if (progress.loaders > 1) {
      name += format(" {}/{}", progress.loader + 1, progress.loaders);
    }
    std::string tail = format(" {}/{} [{}<{}, {:.1f} batches/s", progress.done, progress.batches,
                              clock_text(seconds), clock_text(left), rate);
    for (const auto& [key, value] : progress.values) {
      tail += format(", {}={:.4g}", key, value);
    }
    tail += "]";
    if (!terminal_) {
      write(format("{} {:3.0f} %", name, 100 * fraction) + tail + "\n");
      return;
    }
    const int width = columns() - static_cast<int>(name.size() + tail.size()) - 9;
    std::string line = format("{} {:3.0f} %", name, 100 * fraction);
    if (width >= 4) {
      line += " " + bar(fraction, std::min(width, 40)) + "▏";
    }
    write("\r" + line + tail + "\x1b[K");
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
  int64_t loader_ = -1;
  Clock::time_point start_{};
  Clock::time_point loader_start_{};
  Clock::time_point last_{};
  Clock::time_point next_{};
  Clock::duration gap_ = first_line;
};

}  // namespace

std::shared_ptr<Callback> make_progress_bar(std::FILE* out) {
  return std::make_shared<ProgressBar>(out);
}

}  // namespace muster
