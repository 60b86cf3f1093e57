#include <muster/base/check.h>
#include <muster/train/options.h>
#include <muster/train/timer.h>

#include <utility>

namespace muster {

Timer::Timer(const TimerOptions& options) : interval_{options.interval} {
  check(options.duration.empty() || !options.seconds, "Timer: give duration or seconds, not both");
  limit_ = options.duration.empty() ? options.seconds
                                    : std::optional{parse_time(options.duration, "duration")};
  check(!limit_ || *limit_ >= 0, "Timer: expected at least 0 seconds, found {}",
        limit_.value_or(0));
}

double Timer::time_elapsed() const {
  return before_ + (start_ ? std::chrono::duration<double>(Clock::now() - *start_).count() : 0.0);
}

std::optional<double> Timer::time_remaining() const {
  return limit_ ? std::optional{*limit_ - time_elapsed()} : std::nullopt;
}

void Timer::on_start(const Progress& progress) {
  if (progress.stage != Stage::fit) {
    return;
  }
  if (!std::exchange(loaded_, false)) {
    before_ = 0.0;
  }
  start_ = Clock::now();
  stop_when_up(*progress.training);
}

void Timer::on_batch_end(const Progress& progress) {
  if (progress.stage == Stage::fit && interval_ == TimerOptions::Interval::step) {
    stop_when_up(*progress.training);
  }
}

void Timer::on_epoch_end(const Progress& progress, const Report& /*report*/) {
  if (progress.stage == Stage::fit && interval_ == TimerOptions::Interval::epoch) {
    stop_when_up(*progress.training);
  }
}

void Timer::on_end(const Progress& progress) {
  if (progress.stage == Stage::fit) {
    before_ = time_elapsed();
    start_.reset();
  }
}

void Timer::stop_when_up(Training& training) const {
  if (limit_ && time_elapsed() >= *limit_) {
    training.stop(format("its time of {} s is up", *limit_));
  }
}

Value Timer::state() const {
  Value state;
  state["time_elapsed"] = time_elapsed();
  return state;
}

void Timer::load_state(const Value& state) {
  const Value* elapsed = state.find("time_elapsed");
  check(elapsed != nullptr, ErrorKind::data, "Timer: the checkpoint has no time_elapsed");
  before_ = elapsed->as_double();
  loaded_ = true;
}

}  // namespace muster
