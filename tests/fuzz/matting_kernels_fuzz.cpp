// Matting errors of small pictures that a fuzzer draws: the AVX2 kernels give the bits of the
// portable ones, and both agree with the slow reference of the tests.
//
// Input: kind of values and of pictures, profile, width, height, then the values. What the input
// lacks is 0.

#include <muster/base/error.h>
#include <muster/matting/errors.h>

#include "src/matting/workspace_internal.h"
#include "tests/fuzz/target.h"
#include "tests/matting/pictures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {
namespace {

using fuzz::require;
using test::Grid;
using test::SlowReference;

class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_{bytes} {}

  uint8_t byte() {
    if (bytes_.empty()) {
      return 0;
    }
    const auto value = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }

  template <typename T>
  T bits() {
    T value;
    uint8_t raw[sizeof(T)];
    for (uint8_t& one : raw) {
      one = byte();
    }
    std::memcpy(&value, raw, sizeof(T));
    return value;
  }

 private:
  std::string_view bytes_;
};

/// How bytes become values.
enum class Values { bytes, tenths, two, raw };

template <typename T>
T value_of(Input& input, Values kind) {
  const auto scaled = [](double alpha) {
    return std::is_integral_v<T>
               ? static_cast<T>(std::lround(alpha * static_cast<double>(full_scale<T>())))
               : static_cast<T>(alpha);
  };
  switch (kind) {
    case Values::bytes:
      return scaled(input.byte() / 255.0);
    case Values::tenths:
      return scaled(input.byte() % 11 / 10.0);
    case Values::two:
      return scaled(input.byte() % 2);
    case Values::raw:
      return input.bits<T>();
  }
  return T{};
}

/// Each value for itself, or runs of one value, whose lengths are bytes too.
template <typename T>
Grid<T> grid_of(Input& input, int width, int height, Values kind, bool in_runs) {
  Grid<T> grid{width, height, {}};
  const auto size = static_cast<size_t>(width) * static_cast<size_t>(height);
  while (grid.values.size() < size) {
    const T value = value_of<T>(input, kind);
    const size_t length = in_runs ? size_t{1} + input.byte() : 1;
    grid.values.resize(std::min(size, grid.values.size() + length), value);
  }
  return grid;
}

template <typename T>
std::optional<MattingErrors> errors_with(const Kernels& kernels, const Grid<T>& prediction,
                                         const Grid<T>& truth, const Grid<uint8_t>& trimap,
                                         MattingProfile profile) {
  static MattingWorkspace workspace;  // what it held before must not matter
  workspace.buffers().kernels = &kernels;
  try {
    return matting_errors(prediction.view(), truth.view(), trimap.view(), {.profile = profile},
                          workspace);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::data, "an error of another kind");
    return std::nullopt;
  }
}

void require_same(const RegionErrors& one, const RegionErrors& two) {
  require(one.n == two.n && one.sums == two.sums, "kernels differ in integers");
  require(one.values.has_value() == two.values.has_value(), "kernels differ in values");
  if (one.values) {
    const auto bits = [](const ErrorValues& values) {
      return std::bit_cast<std::array<uint64_t, 4>>(values);
    };
    require(bits(*one.values) == bits(*two.values), "kernels differ in bits");
  }
}

bool close(double actual, double expected, double relative) {
  return std::abs(actual - expected) <= relative * std::abs(expected) + 1e-18;
}

void require_close(const RegionErrors& actual, const RegionErrors& expected) {
  require(actual.n == expected.n && actual.sums == expected.sums, "integers differ from reference");
  require(actual.values.has_value() == expected.values.has_value(), "values differ");
  if (actual.values) {
    require(close(actual.values->sad, expected.values->sad, 1e-12), "sad differs from reference");
    require(close(actual.values->mse, expected.values->mse, 1e-12), "mse differs from reference");
    require(close(actual.values->grad, expected.values->grad, 1e-9), "grad differs from reference");
    require(close(actual.values->conn, expected.values->conn, 1e-12),
            "conn differs from reference");
  }
}

template <typename T>
void check_pictures(Input& input, Values kind, bool in_runs, bool is_wide) {
  const auto profile = static_cast<MattingProfile>(input.byte() % 4);
  const int width = 1 + input.byte() % (is_wide ? 150 : 12);
  const int height = 1 + input.byte() % (is_wide ? 30 : 12);
  const auto prediction = grid_of<T>(input, width, height, kind, in_runs);
  auto truth = grid_of<T>(input, width, height, kind, in_runs);
  if (in_runs && input.byte() % 2 == 0) {
    std::copy_n(prediction.values.begin(), prediction.values.size() / 2, truth.values.begin());
  }
  const auto trimap = grid_of<uint8_t>(input, width, height, Values::bytes, in_runs);

  const auto errors = errors_with(portable_kernels(), prediction, truth, trimap, profile);
  if (avx2_kernels() != nullptr) {
    const auto others = errors_with(*avx2_kernels(), prediction, truth, trimap, profile);
    require(errors.has_value() == others.has_value(), "kernels refuse different pictures");
    if (errors) {
      require_same(*errors->unknown, *others->unknown);
      require_same(errors->all, others->all);
    }
  }
  if (std::is_integral_v<T> || kind != Values::raw) {
    // Raw floats may lie so close together that 1e-9 of their difference is beyond a double.
    require(errors.has_value(), "good values were refused");
    const SlowReference<T> reference{prediction, truth, profile};
    require_close(*errors->unknown, reference.errors(test::unknown_of(trimap)));
    require_close(errors->all, reference.errors(std::vector<bool>(trimap.values.size(), true)));
  }
}

void check(Input input) {
  const uint8_t first = input.byte();
  const auto kind = static_cast<Values>(first & 3);
  const bool in_runs = (first & 4) != 0;
  const bool is_wide = (first & 8) != 0;
  switch (first >> 4 & 3) {
    case 0:
      return check_pictures<uint8_t>(input, kind, in_runs, is_wide);
    case 1:
      return check_pictures<uint16_t>(input, kind, in_runs, is_wide);
    case 2:
      return check_pictures<float>(input, kind, in_runs, is_wide);
    default:
      return check_pictures<double>(input, kind, in_runs, is_wide);
  }
}

}  // namespace

namespace fuzz {

void check_input(std::string_view input) { check(Input{input}); }

std::vector<std::string> seeds() { return {}; }

}  // namespace fuzz
}  // namespace muster
