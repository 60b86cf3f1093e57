#include <muster/base/check.h>
#include <muster/train/options.h>

#include <algorithm>
#include <cmath>

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
  const auto taken = static_cast<int64_t>(std::floor(fraction * static_cast<double>(batches)));
  check(taken > 0 || fraction == 0.0 || batches == 0,
        "{}: {} of {} batches is less than one; write a whole number for batches, or 0 for none",
        name, fraction, batches);
  return taken;
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
}

}  // namespace muster
