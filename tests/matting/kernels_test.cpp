#include <muster/matting/errors.h>

#include "src/matting/kernels_internal.h"
#include "src/matting/workspace_internal.h"
#include "tests/matting/pictures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace muster {
namespace {

/// 64 * words values, with a zero before them, as the kernels take rows of levels.
class LevelRow {
 public:
  LevelRow(Rng& rng, int64_t width) : words_{width / 64 + 1}, values_(1 + 64 * words_) {
    const int64_t most = 1 + rng.below(10);
    const int64_t longest = 1 + rng.below(20);
    for (int64_t x = 0; x < width;) {
      const auto level = static_cast<uint8_t>(rng.below(most + 1));
      for (int64_t left = 1 + rng.below(longest); left > 0 && x < width; --left, ++x) {
        values_[1 + x] = level;
      }
    }
  }

  [[nodiscard]] const uint8_t* data() const { return values_.data() + 1; }
  [[nodiscard]] int64_t words() const { return words_; }
  [[nodiscard]] uint8_t operator[](int64_t x) const { return values_[1 + x]; }

 private:
  int64_t words_;
  std::vector<uint8_t> values_;
};

bool bit(const std::vector<uint64_t>& bits, int64_t x) {
  return (bits[x / 64] >> (x % 64) & 1) != 0;
}

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all{&portable_kernels()};
  if (avx2_kernels() != nullptr) {
    all.push_back(avx2_kernels());
  }
  return all;
}

TEST(MattingKernels, FindWhereALevelDiffersFromTheOneBefore) {
  for (const Kernels* kernels : all_kernels()) {
    for (int64_t width = 1; width <= 300; ++width) {
      Rng rng{1, static_cast<uint64_t>(width)};
      const LevelRow row{rng, width};
      std::vector<uint64_t> bits(row.words(), ~uint64_t{0});
      kernels->changes(row.data(), row.words(), bits.data());
      for (int64_t x = 0; x < 64 * row.words(); ++x) {
        ASSERT_EQ(bit(bits, x), row[x] != row[x - 1]) << "width " << width << ", x " << x;
      }
    }
  }
}

TEST(MattingKernels, FindTheEndsOfPlateausThatAreHigherThanBothSides) {
  for (const Kernels* kernels : all_kernels()) {
    for (int64_t width = 1; width <= 300; ++width) {
      Rng rng{2, static_cast<uint64_t>(width)};
      const LevelRow above{rng, width};
      const LevelRow here{rng, width};
      std::vector<uint64_t> bits(here.words(), ~uint64_t{0});
      kernels->peak_ends(above.data(), here.data(), here.words(), bits.data());
      bool rose = false;
      for (int64_t x = 0; x < 64 * here.words(); ++x) {
        const int now = std::min(above[x], here[x]);
        const int before = std::min(above[x - 1], here[x - 1]);
        ASSERT_EQ(bit(bits, x), rose && now < before) << "width " << width << ", x " << x;
        rose = now > before || (rose && now == before);
      }
    }
  }
}

void expect_same_bits(double one, double two) {
  EXPECT_EQ(std::bit_cast<uint64_t>(one), std::bit_cast<uint64_t>(two)) << one << ' ' << two;
}

void expect_same_bits(const RegionErrors& one, const RegionErrors& two) {
  EXPECT_EQ(one.n, two.n);
  EXPECT_EQ(one.sums, two.sums);
  ASSERT_EQ(one.values.has_value(), two.values.has_value());
  if (one.values) {
    expect_same_bits(one.values->sad, two.values->sad);
    expect_same_bits(one.values->mse, two.values->mse);
    expect_same_bits(one.values->grad, two.values->grad);
    expect_same_bits(one.values->conn, two.values->conn);
  }
}

template <typename T>
class MattingKernelsOf : public testing::Test {};
using ValueTypes = testing::Types<uint8_t, uint16_t, float, double>;
TYPED_TEST_SUITE(MattingKernelsOf, ValueTypes);

TYPED_TEST(MattingKernelsOf, Avx2GiveTheBitsOfThePortableOnes) {
  if (avx2_kernels() == nullptr) {
    GTEST_SKIP() << "this processor has no AVX2";
  }
  MattingWorkspace portable;
  MattingWorkspace avx2;
  portable.buffers().kernels = &portable_kernels();
  avx2.buffers().kernels = avx2_kernels();
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE("picture " + std::to_string(i));
    Rng rng{3, static_cast<uint64_t>(i)};
    const int style = static_cast<int>(rng.below(test::styles));
    const int width = static_cast<int>(1 + rng.below(200));
    const int height = static_cast<int>(1 + rng.below(20));
    const auto truth = test::random_grid<TypeParam>(rng, width, height, style);
    const auto prediction = test::random_prediction(rng, truth, style);
    const auto trimap = test::random_trimap(rng, width, height);
    for (const auto profile : test::profiles) {
      const MattingOptions options{.profile = profile};
      const auto one =
          matting_errors(prediction.view(), truth.view(), trimap.view(), options, portable);
      const auto two =
          matting_errors(prediction.view(), truth.view(), trimap.view(), options, avx2);
      expect_same_bits(*one.unknown, *two.unknown);
      expect_same_bits(one.all, two.all);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
}

TYPED_TEST(MattingKernelsOf, SumIntegersOfFullRowsWithoutOverflow) {
  // The largest differences in a row that is longer than what one accumulator holds.
  constexpr int64_t width = 3 * 32768 + 17;
  const std::vector<TypeParam> ones(width, full_scale<TypeParam>());
  const std::vector<TypeParam> zeros(width);
  const std::vector<uint8_t> unknown(width, 128);
  const std::vector<uint8_t> tenths(width + 32, 0);
  for (const Kernels* kernels : all_kernels()) {
    Sums<TypeParam> sums;
    kernels->rows<TypeParam>().add_sums(ones.data(), zeros.data(), unknown.data(), tenths.data(),
                                        width, sums);
    using Sum = typename RegionSums<TypeParam>::Sum;
    const auto full = static_cast<Sum>(full_scale<TypeParam>());
    const Sum tens = std::is_integral_v<TypeParam> ? 10 : 1;
    for (const auto& region : {sums.all, sums.unknown}) {
      EXPECT_EQ(region.n, width);
      EXPECT_EQ(region.sad, full * width);
      EXPECT_EQ(region.sse, full * full * width);
      EXPECT_EQ(region.conn, tens * full * width);
    }
  }
}

template <typename T>
void refuse_what_is_not_in_zero_to_one() {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Kernels* kernels : all_kernels()) {
    const auto& rows = kernels->rows<T>();
    for (const int64_t width : {1, 3, 31, 32, 33, 70}) {
      const std::vector<T> good(width, T{1});
      std::vector<uint8_t> levels(width + 32);
      EXPECT_TRUE(rows.levels(good.data(), good.data(), width, levels.data()));
      for (int64_t x = 0; x < width; ++x) {
        for (const T value : {nan, static_cast<T>(-1e-6), static_cast<T>(1.00001)}) {
          auto bad = good;
          bad[x] = value;
          EXPECT_FALSE(rows.levels(bad.data(), good.data(), width, levels.data()));
          EXPECT_FALSE(rows.levels(good.data(), bad.data(), width, levels.data()));
        }
      }
    }
  }
}

TEST(MattingKernels, RefuseAFloatThatIsNotInZeroToOneWhereverItLies) {
  refuse_what_is_not_in_zero_to_one<float>();
}

TEST(MattingKernels, RefuseADoubleThatIsNotInZeroToOneWhereverItLies) {
  refuse_what_is_not_in_zero_to_one<double>();
}

}  // namespace
}  // namespace muster
