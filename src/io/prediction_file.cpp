#include <muster/base/check.h>
#include <muster/base/text.h>
#include <muster/io/prediction_file.h>

namespace muster {

std::string prediction_file_name(int64_t index, std::string_view name, std::string_view extension) {
  check(index >= 0, "The index of a prediction must not be negative, and it is {}", index);
  constexpr size_t longest = 200;
  const std::string number = format("{:06}-", index);
  const size_t room = longest - number.size() - extension.size();
  return number + safe_file_name(name, room).append(extension);
}

}  // namespace muster
