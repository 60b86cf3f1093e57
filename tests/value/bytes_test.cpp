#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/random.h>
#include <muster/value/value.h>

#include <cmath>
#include <cstring>

namespace {

using muster::Error;
using muster::ErrorKind;
using muster::from_bytes;
using muster::identical;
using muster::to_bytes;
using muster::Value;

std::string number_bytes(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

Value sample() {
  Value value;
  value["null"] = Value{};
  value["flags"] = Value::List{true, false};
  value["int"] = int64_t{INT64_MIN};
  value["float"] = -0.0;
  value["nan"] = std::nan("");
  value["text"] = std::string{"zero \0 inside", 13};
  value["empty"] = Value::List{Value::List{}, Value::Dict{}, ""};
  value["image"] = at::arange(24, at::kFloat).view({2, 3, 4});
  value["undefined"] = at::Tensor{};
  return value;
}

void expect_data_error(const std::string& bytes) {
  try {
    (void)from_bytes(bytes);
    ADD_FAILURE() << "was read: " << testing::PrintToString(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
  }
}

TEST(Bytes, ReadBackTheSameTree) {
  const Value value = sample();
  const Value copy = from_bytes(to_bytes(value));
  EXPECT_TRUE(identical(copy, value));
  EXPECT_EQ(to_json(copy), to_json(value));
}

TEST(Bytes, KeepEveryDtypeShapeAndBit) {
  for (const auto dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                           at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat,
                           at::kComplexDouble, at::kUInt16, at::kUInt32, at::kUInt64}) {
    const at::Tensor tensor = at::arange(12, at::kFloat).view({3, 2, 2}).to(dtype);
    const at::Tensor copy = from_bytes(to_bytes(tensor)).as_tensor();
    EXPECT_EQ(copy.scalar_type(), dtype);
    EXPECT_EQ(copy.sizes(), tensor.sizes());
    EXPECT_EQ(std::memcmp(copy.const_data_ptr(), tensor.const_data_ptr(), tensor.nbytes()), 0);
  }
}

TEST(Bytes, WriteATensorAloneWhateverItsStrides) {
  const at::Tensor wide = at::arange(1000);
  EXPECT_LT(to_bytes(wide.slice(0, 3, 5)).size(), 64);
  const at::Tensor turned = at::arange(6).view({2, 3}).t();
  const at::Tensor copy = from_bytes(to_bytes(turned)).as_tensor();
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_TRUE(copy.equal(turned));
  const at::Tensor expanded = at::scalar_tensor(2.0).expand({2, 2});
  EXPECT_TRUE(from_bytes(to_bytes(expanded)).as_tensor().equal(at::full({2, 2}, 2.0)));
}

TEST(Bytes, KeepEmptyAndScalarTensors) {
  const at::Tensor empty = from_bytes(to_bytes(at::zeros({0, 3}))).as_tensor();
  EXPECT_EQ(empty.sizes(), (std::vector<int64_t>{0, 3}));
  const at::Tensor scalar = from_bytes(to_bytes(at::scalar_tensor(2.5))).as_tensor();
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.item().toDouble(), 2.5);
}

TEST(Bytes, GiveTensorsMemoryOfTheirOwn) {
  std::string bytes = to_bytes(at::zeros({3}));
  const at::Tensor copy = from_bytes(bytes).as_tensor();
  bytes.assign(bytes.size(), '\x7f');
  EXPECT_TRUE(copy.equal(at::zeros({3})));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.const_data_ptr()) % 64, 0);
}

TEST(Bytes, DropGradients) {
  const at::Tensor leaf = at::zeros({2}).set_requires_grad(true);
  EXPECT_FALSE(from_bytes(to_bytes(leaf)).as_tensor().requires_grad());
}

TEST(Bytes, AreTheSameOnEveryMachine) {
  Value value;
  value["a"] = Value::List{1, -1.5, "x"};
  const std::string expected = std::string{"\x09"} + number_bytes(1) + number_bytes(1) + "a" +
                               "\x08" + number_bytes(3) + "\x03" + number_bytes(1) + "\x04" +
                               number_bytes(0xbff8000000000000U) + "\x05" + number_bytes(1) + "x";
  EXPECT_EQ(to_bytes(value), expected);
}

TEST(Bytes, ThatAreCutShortAreAnError) {
  const std::string bytes = to_bytes(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    expect_data_error(bytes.substr(0, size));
  }
}

TEST(Bytes, ThatGoOnAfterTheValueAreAnError) { expect_data_error(to_bytes(sample()) + '\0'); }

TEST(Bytes, WithPromisesBeyondTheirSizeTakeNoMemory) {
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}, uint64_t{1} << 63}) {
    expect_data_error("\x05" + number_bytes(size) + "text");
    expect_data_error("\x08" + number_bytes(size) + std::string(3, '\0'));
    expect_data_error("\x09" + number_bytes(size) + number_bytes(1) + "a");
    const std::string no_dims = std::string{"\x07\x08\x01", 3};
    expect_data_error(no_dims + number_bytes(size) + "data");
    const std::string two_dims = std::string{"\x07\x08\x02", 3};
    expect_data_error(two_dims + number_bytes(size) + number_bytes(size));
    // Zero elements, yet strides that overflow.
    expect_data_error(std::string{"\x07\x08\x03", 3} + number_bytes(0) + number_bytes(size) +
                      number_bytes(size));
  }
}

TEST(Bytes, OfUnknownTagsAndDtypesAreAnError) {
  expect_data_error("\x0a");
  expect_data_error("\xff");
  expect_data_error(std::string{"\x07\x40\x00", 3});
  expect_data_error(std::string{"\x07\x08\xff", 3} + std::string(4096, '\0'));
}

TEST(Bytes, OfABoolTensorHoldOnlyZeroAndOne) {
  std::string bytes = to_bytes(at::zeros({2}, at::kBool));
  bytes.back() = '\x02';
  expect_data_error(bytes);
}

TEST(Bytes, OfADictHoldEachKeyOnce) {
  std::string bytes = to_bytes(Value::Dict{{"a", 1}, {"b", 2}});
  bytes[bytes.find('b')] = 'a';
  expect_data_error(bytes);
}

TEST(Bytes, NestAtMostSixtyFourLevels) {
  Value value = 1;
  for (int level = 2; level <= 64; ++level) {
    value = Value::List{std::move(value)};
  }
  EXPECT_TRUE(identical(from_bytes(to_bytes(value)), value));
  const Value deeper = Value::List{value};
  EXPECT_THROW((void)to_bytes(deeper), Error);
  std::string bytes;
  for (int level = 0; level < 1'000'000; ++level) {
    bytes += '\x08' + number_bytes(1);
  }
  expect_data_error(bytes);
}

TEST(Bytes, ThatAreDamagedAnywhereAreReadOrRefusedButNeverCrash) {
  const std::string whole = to_bytes(sample());
  muster::Rng rng{7};
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (int flips = 0; flips < 3; ++flips) {
      const auto place = static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())));
      bytes[place] = static_cast<char>(rng.below(256));
    }
    try {
      (void)from_bytes(bytes);
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::data);
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 20000);
}

}  // namespace
