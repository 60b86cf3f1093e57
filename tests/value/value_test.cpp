#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/value/tensor.h>
#include <muster/value/value.h>

#include <cmath>
#include <limits>

namespace {

using muster::Error;
using muster::Value;

TEST(Value, TellsItsKind) {
  EXPECT_EQ(Value{}.kind(), "null");
  EXPECT_EQ(Value{true}.kind(), "bool");
  EXPECT_EQ(Value{3}.kind(), "int");
  EXPECT_EQ(Value{0.5}.kind(), "float");
  EXPECT_EQ(Value{"text"}.kind(), "string");
  EXPECT_EQ(Value{at::arange(2)}.kind(), "tensor");
  EXPECT_EQ(Value{Value::List{}}.kind(), "list");
  EXPECT_EQ(Value{Value::Dict{}}.kind(), "dict");
}

TEST(Value, GivesTheContentThatItHolds) {
  EXPECT_TRUE(Value{true}.as_bool());
  EXPECT_EQ(Value{int64_t{1} << 40}.as_int(), int64_t{1} << 40);
  EXPECT_EQ(Value{0.5}.as_double(), 0.5);
  EXPECT_EQ(Value{3}.as_double(), 3.0);
  EXPECT_EQ(Value{"text"}.as_string(), "text");
  EXPECT_EQ(Value{at::arange(2)}.as_tensor().numel(), 2);
}

TEST(Value, NamesBothKindsWhenAskedForAnother) {
  try {
    (void)Value{"fast"}.as_double();
    FAIL() << "a string was taken for a float";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), muster::ErrorKind::usage);
    EXPECT_STREQ(error.what(), "expected a value of kind float, found string");
  }
  EXPECT_THROW((void)Value{0.5}.as_int(), Error);
  EXPECT_THROW((void)Value{1}.as_bool(), Error);
  EXPECT_THROW((void)Value{}.as_dict(), Error);
  EXPECT_THROW((void)Value{Value::Dict{}}.as_list(), Error);
}

TEST(Value, KeepsTheOrderInWhichKeysWereAdded) {
  Value value;
  value["zebra"] = 1;
  value["ape"]["age"] = 3;
  value["zebra"] = 2;
  ASSERT_EQ(value.as_dict().size(), 2);
  EXPECT_EQ(value.as_dict()[0].first, "zebra");
  EXPECT_EQ(value.find("zebra")->as_int(), 2);
  EXPECT_EQ(value.find("ape")->find("age")->as_int(), 3);
  EXPECT_EQ(value.find("bee"), nullptr);
  EXPECT_EQ(Value{1}.find("bee"), nullptr);
  EXPECT_THROW(Value{1}["key"], Error);
}

TEST(Value, ShowsAsOneLineOfJson) {
  Value value;
  value["n"] = 3;
  value["x"] = 0.1;
  value["nan"] = std::nan("");
  value["text"] = "a \"b\"\n";
  value["list"] = Value::List{true, Value{}, Value::Dict{}};
  value["tensor"] = at::zeros({2, 3});
  EXPECT_EQ(to_json(value), R"({"n": 3, "x": 0.1, "nan": "NaN", "text": "a \"b\"\u000a", )"
                            R"("list": [true, null, {}], "tensor": "float32[2, 3]"})");
}

TEST(Value, IsIdenticalByKindShapeAndBits) {
  const double nan = std::nan("");
  EXPECT_TRUE(identical(Value{nan}, Value{nan}));
  EXPECT_FALSE(identical(Value{0.0}, Value{-0.0}));
  EXPECT_FALSE(identical(Value{1}, Value{1.0}));
  EXPECT_FALSE(identical(Value{1}, Value{true}));
  EXPECT_TRUE(identical(Value{at::arange(6)}, Value{at::arange(6)}));
  EXPECT_FALSE(identical(Value{at::arange(6)}, Value{at::arange(6).view({2, 3})}));
  EXPECT_FALSE(identical(Value{at::arange(6)}, Value{at::arange(6, at::kInt)}));
  EXPECT_TRUE(identical(Value{at::full({2}, nan)}, Value{at::full({2}, nan)}));
  EXPECT_TRUE(identical(Value{at::arange(6).view({2, 3}).t()},
                        Value{at::arange(6).view({2, 3}).t().contiguous()}));
  EXPECT_TRUE(identical(Value{at::Tensor{}}, Value{at::Tensor{}}));
  EXPECT_FALSE(identical(Value{at::Tensor{}}, Value{}));
  EXPECT_FALSE(identical(Value::Dict{{"a", 1}, {"b", 2}}, Value::Dict{{"b", 2}, {"a", 1}}));
}

TEST(Tensor, IsDescribedAsInPython) {
  EXPECT_EQ(muster::describe(at::zeros({3, 4})), "float32[3, 4]");
  EXPECT_EQ(muster::describe(at::zeros({0}, at::kBFloat16)), "bfloat16[0]");
  EXPECT_EQ(muster::describe(at::scalar_tensor(1, at::kLong)), "int64[]");
  EXPECT_EQ(muster::describe(at::zeros({1}, at::kBool)), "bool[1]");
  EXPECT_EQ(muster::describe(at::zeros({2}, at::kByte)), "uint8[2]");
  EXPECT_EQ(muster::describe(at::Tensor{}), "undefined");
  EXPECT_EQ(muster::dtype_name(at::kUInt16), "uint16");
  EXPECT_EQ(muster::dtype_name(at::kFloat8_e5m2), "float8_e5m2");
  EXPECT_EQ(muster::dtype_name(at::kComplexDouble), "complex128");
}

TEST(Value, ATemporaryGivesItsContentAwayInsteadOfAReferenceIntoIt) {
  int64_t sum = 0;
  for (const auto& item : Value{Value::List{1, 2, 3}}.as_list()) {
    sum += item.as_int();
  }
  EXPECT_EQ(sum, 6);
  static_assert(!std::is_reference_v<decltype(Value{}.as_list())>);
  static_assert(!std::is_reference_v<decltype(Value{}.as_dict())>);
  static_assert(!std::is_reference_v<decltype(Value{}.as_string())>);
  static_assert(!std::is_reference_v<decltype(Value{}.as_tensor())>);
}

}  // namespace
