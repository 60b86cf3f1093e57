#include <muster/base/check.h>
#include <muster/base/text.h>
#include <muster/value/convert.h>

#include <algorithm>
#include <cmath>

namespace muster {

namespace detail {

int64_t read_integer(const Value& value, int64_t lowest, uint64_t highest, const ValuePath& path) {
  if (!value.is_int()) {
    path.fail_expected("an int", value);
  }
  const int64_t number = value.as_int();
  if (number < lowest || (number > 0 && static_cast<uint64_t>(number) > highest)) {
    path.fail_expected(format("an int from {} to {}", lowest, highest), value);
  }
  return number;
}

double read_number(const Value& value, double highest, const ValuePath& path) {
  if (!value.is_int() && !value.is_double()) {
    path.fail_expected("a float", value);
  }
  const double number = value.as_double();
  if (std::isfinite(number) && std::abs(number) > highest) {
    path.fail_expected(format("a float of at most {:.6g} in size", highest), value);
  }
  return number;
}

const Value::List& read_list(const Value& value, const ValuePath& path) {
  if (!value.is_list()) {
    path.fail_expected("a list", value);
  }
  return value.as_list();
}

const Value::List& read_list(const Value& value, size_t size, const ValuePath& path) {
  if (!value.is_list() || value.as_list().size() != size) {
    path.fail_expected(format("a list of {}", size), value);
  }
  return value.as_list();
}

const Value::Dict& read_dict(const Value& value, const ValuePath& path) {
  if (!value.is_dict()) {
    path.fail_expected("a dict", value);
  }
  return value.as_dict();
}

int64_t write_unsigned(uint64_t number) {
  check(number <= static_cast<uint64_t>(INT64_MAX),
        "{} is above the highest int that a Value holds, {}", number, INT64_MAX);
  return static_cast<int64_t>(number);
}

size_t read_name(const Value& value, const std::vector<std::string>& names, const ValuePath& path) {
  if (value.is_string()) {
    const auto found = std::find(names.begin(), names.end(), value.as_string());
    if (found != names.end()) {
      return static_cast<size_t>(found - names.begin());
    }
  }
  std::string expected;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    expected += (i == 0 ? "" : last ? " or " : ", ") + names[i];
  }
  path.fail_expected(expected, value);
}

void fail_unnamed_enum(int64_t value) {
  fail(ErrorKind::usage, "the enum's value {} is not among its enum_names", value);
}

}  // namespace detail

void ValueConverter<bool>::read(const Value& value, bool& target, const ValuePath& path) {
  if (!value.is_bool()) {
    path.fail_expected("a bool", value);
  }
  target = value.as_bool();
}

void ValueConverter<std::string>::read(const Value& value, std::string& target,
                                       const ValuePath& path) {
  if (!value.is_string()) {
    path.fail_expected("a string", value);
  }
  target = value.as_string();
}

void ValueConverter<std::filesystem::path>::read(const Value& value, std::filesystem::path& target,
                                                 const ValuePath& path) {
  if (!value.is_string()) {
    path.fail_expected("a path", value);
  }
  target = value.as_string();
}

void ValueConverter<at::Tensor>::read(const Value& value, at::Tensor& target,
                                      const ValuePath& path) {
  if (!value.is_tensor()) {
    path.fail_expected("a tensor", value);
  }
  target = value.as_tensor();
}

}  // namespace muster
