#include <muster/base/check.h>
#include <muster/train/options.h>

#include <cmath>

namespace muster {

int64_t BatchLimit::of(int64_t batches, std::string_view name) const {
  if (const auto* count = std::get_if<int64_t>(&limit_)) {
    check(*count >= 0, "{} is a number of batches (0 or more) or a fraction, not {}", name, *count);
    return std::min(*count, batches);
  }
  const double fraction = std::get<double>(limit_);
  check(fraction >= 0.0 && fraction <= 1.0,
        "{} as a fraction lies in [0, 1], not {}; write a whole number for batches", name,
        fraction);
  return static_cast<int64_t>(std::floor(fraction * static_cast<double>(batches)));
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
  if (!value.is_int() || value.as_int() < 1) {
    path.fail_expected("a number of threads (1 or more) or auto", value);
  }
  target.count = value.as_int();
}

}  // namespace muster
