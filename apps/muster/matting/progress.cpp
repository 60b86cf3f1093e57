#include "progress.h"

#include <muster/base/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::app {

namespace {

constexpr std::chrono::milliseconds redraw{100};
constexpr std::chrono::milliseconds before_bar{300};
constexpr std::chrono::seconds first_line{10};
constexpr std::chrono::seconds longest_gap{60};

std::string clock_text(double seconds) {
  const int64_t total = std::llround(seconds);
  return format("{}:{:02}", total / 60, total % 60);
}

}  // namespace

Progress::Progress(std::FILE* out, std::string what, int64_t total)
    : out_{out},
      what_{std::move(what)},
      total_{std::max<int64_t>(total, 1)},
      terminal_{isatty(fileno(out)) == 1},
      start_{Clock::now()},
      gap_{terminal_ ? Clock::duration{before_bar} : Clock::duration{first_line}} {
  next_ = start_ + gap_;
}

Progress::~Progress() {
  if (drawn_) {
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
  }
}

void Progress::show(int64_t done) {
  const auto now = Clock::now();
  if (now < next_) {
    return;
  }
  if (!terminal_) {
    std::fputs((line(done, 0) + "\n").c_str(), out_);
    gap_ = std::min<Clock::duration>(2 * gap_, longest_gap);
    next_ = now + gap_;
    return;
  }
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::fputs(("\r" + line(done, known ? size.ws_col : 80U) + "\x1b[K").c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
  next_ = now + redraw;
}

std::string Progress::line(int64_t done, size_t width) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  const double rate = static_cast<double>(done) / seconds;
  const std::string left =
      done > 0 ? clock_text(static_cast<double>(total_ - done) / rate) : std::string{"?"};
  const std::string head = format("{} {:3.0f} %", what_, 100.0 * fraction);
  const std::string tail =
      format(" {}/{} [{}<{}, {:.1f} images/s]", done, total_, clock_text(seconds), left, rate);
  constexpr size_t widest = 40;
  constexpr size_t around = 3;  // a space before the bar, its end, and the last column kept free
  const size_t used = head.size() + tail.size() + around;
  if (width < used + 4) {
    return width == 0 ? head + tail : (head + tail).substr(0, width - 1);
  }
  const size_t room = std::min(width - used, widest);
  const auto filled = static_cast<size_t>(fraction * static_cast<double>(room));
  std::string bar;
  for (size_t i = 0; i < room; ++i) {
    bar += i < filled ? "█" : " ";
  }
  return head + " " + bar + "▏" + tail;
}

}  // namespace muster::app
