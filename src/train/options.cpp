#include <muster/base/check.h>
#include <muster/train/options.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace muster {

namespace {

constexpr int64_t most_threads = 1024;

}  // namespace

int64_t BatchLimit::of(int64_t batches, std::string_view name) const {
  if (const auto* count = std::get_if<int64_t>(&limit_)) {
    check(*count >= 0, "{} is a number of batches (0 or more) or a fraction, not {}", name, *count);
    return std::min(*count, batches);
  }
  const double fraction = std::get<double>(limit_);
  check(fraction >= 0.0 && fraction <= 1.0,
        "{} as a fraction lies in [0, 1], not {}; write a whole number for batches", name,
        fraction);
  if (fraction == 1.0) {
    return batches;
  }
  const auto taken = static_cast<int64_t>(std::floor(fraction * static_cast<double>(batches)));
  check(taken > 0 || fraction == 0.0 || batches == 0,
        "{}: {} of {} batches is less than one; write a whole number for batches, or 0 for none",
        name, fraction, batches);
  return taken;
}

int64_t BatchLimit::of(std::optional<int64_t> batches, std::string_view name) const {
  if (const auto* fraction = std::get_if<double>(&limit_); !batches && fraction != nullptr) {
    check(*fraction == 0.0 || *fraction == 1.0,
          "{}: {} of data of which only the end tells how much there is; write a whole number of "
          "batches",
          name, *fraction);
  }
  return of(batches.value_or(std::numeric_limits<int64_t>::max()), name);
}

Value ValueConverter<BatchLimit>::write(const BatchLimit& limit) {
  if (const auto* count = std::get_if<int64_t>(&limit.value())) {
    return *count;
  }
  return std::get<double>(limit.value());
}

void ValueConverter<BatchLimit>::read(const Value& value, BatchLimit& target,
                                      const ValuePath& path) {
  if (!value.is_int() && !value.is_double()) {
    path.fail_expected("a whole number of batches or a fraction such as 0.5", value);
  }
  target = value.is_int() ? BatchLimit{value.as_int()} : BatchLimit{value.as_double()};
  static_cast<void>(target.of(0, path.text()));
}

Value ValueConverter<ThreadCount>::write(const ThreadCount& threads) {
  return threads.count == 0 ? Value{"auto"} : Value{threads.count};
}

void ValueConverter<ThreadCount>::read(const Value& value, ThreadCount& target,
                                       const ValuePath& path) {
  if (value.is_string() && value.as_string() == "auto") {
    target.count = 0;
    return;
  }
  if (!value.is_int() || value.as_int() < 1 || value.as_int() > most_threads) {
    path.fail_expected("a number of threads (1 to 1024) or auto", value);
  }
  target.count = value.as_int();
}

Value ValueConverter<FastDevRun>::write(const FastDevRun& run) { return run.batches; }

void ValueConverter<FastDevRun>::read(const Value& value, FastDevRun& target,
                                      const ValuePath& path) {
  if (value.is_bool()) {
    target.batches = value.as_bool() ? 1 : 0;
    return;
  }
  if (!value.is_int() || value.as_int() < 0) {
    path.fail_expected("true, false or a number of batches", value);
  }
  target.batches = value.as_int();
}

int64_t most_epochs(const TrainerOptions& options) {
  constexpr int64_t where_nothing_bounds = 1000;  // as in Lightning
  const bool bounded = options.max_steps >= 0 || !options.max_time.empty();
  const int64_t epochs = options.max_epochs.value_or(bounded ? -1 : where_nothing_bounds);
  return epochs < 0 ? INT64_MAX : epochs;
}

double parse_time(std::string_view text, std::string_view name) {
  constexpr std::array<double, 4> seconds{86400, 3600, 60, 1};
  double total = 0;
  std::string_view rest = text;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const auto colon = i + 1 < seconds.size() ? rest.find(':') : rest.size();
    int64_t number = -1;
    const auto part = rest.substr(0, colon);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    check(colon <= rest.size() && error == std::errc{} && end == part.data() + part.size() &&
              number >= 0,
          R"({}: expected days, hours, minutes and seconds such as "00:12:00:00", found "{}")",
          name, text);
    constexpr int64_t most = 10'000'000;  // far beyond any training, and within a clock's range
    check(number <= most, "{}: {} is too large a number in {}", name, number, text);
    total += static_cast<double>(number) * seconds[i];
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return total;
}

namespace {

void check_at_least(int64_t value, int64_t least, std::string_view name) {
  check(value >= least, "trainer.{}: expected at least {}, found {}", name, least, value);
}

/// -1, or at least 0.
void check_limit(int64_t value, std::string_view name) {
  check(value >= -1, "trainer.{}: expected 0 or more, or -1 for no limit, found {}", name, value);
}

void check_fit_options(const TrainerOptions& options) {
  check_limit(options.max_epochs.value_or(-1), "max_epochs");
  check_limit(options.max_steps, "max_steps");
  check_limit(options.num_sanity_val_steps, "num_sanity_val_steps");
  if (!options.max_time.empty()) {
    static_cast<void>(parse_time(options.max_time, "trainer.max_time"));
  }
  check_at_least(options.accumulate_grad_batches, 1, "accumulate_grad_batches");
  check_at_least(options.log_every_n_steps, 1, "log_every_n_steps");
  check_at_least(options.check_weights_every_n_steps, 0, "check_weights_every_n_steps");
  check_at_least(options.fast_dev_run.batches, 0, "fast_dev_run");
  check_at_least(options.check_val_every_n_epoch.value_or(1), 1, "check_val_every_n_epoch");
  check(!options.gradient_clip_val || *options.gradient_clip_val > 0,
        "trainer.gradient_clip_val: expected a number above 0, found {}",
        options.gradient_clip_val.value_or(0));
  const auto& interval = options.val_check_interval.value();
  check(std::visit([](auto value) { return value > 0; }, interval),
        "trainer.val_check_interval: expected a number of batches, or a part of them above 0");
  check(options.check_val_every_n_epoch || std::holds_alternative<int64_t>(interval),
        "trainer.check_val_every_n_epoch: null counts val_check_interval across epochs, and that "
        "must be a number of batches then");
}

}  // namespace

void check_options(const TrainerOptions& options) {
  check(options.devices >= 1 && options.devices <= 1024,
        "trainer.devices: expected 1 to 1024, found {}", options.devices);
  check(options.threads.count >= 0 && options.threads.count <= most_threads,
        "trainer.threads: expected 1 to {}, or 0 for auto, found {}", most_threads,
        options.threads.count);
  constexpr double longest = 1e6;
  check(options.timeout > 0 && options.timeout <= longest,
        "trainer.timeout: expected seconds above 0 and at most {}, found {}", longest,
        options.timeout);
  check_fit_options(options);
}

}  // namespace muster
