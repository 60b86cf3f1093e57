#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/random.h>
#include <muster/io/value_file.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "tests/base/expect_error.h"

namespace muster {
namespace {

using Dict = Value::Dict;
using List = Value::List;
using Limits = std::numeric_limits<double>;

SafeTensors parsed(const Value& value) {
  return parse_safetensors(value_file_bytes(value), "x.safetensors");
}

void expect_same(const Value& value) {
  EXPECT_TRUE(identical(value_from_file(parsed(value)), value)) << to_json(value);
}

std::string text_at(const SafeTensors& file, const std::string& path) {
  for (const auto& [name, text] : file.metadata) {
    if (name == path) return text;
  }
  return "nothing";
}

void expect_refused(const SafeTensors& file, const std::string& part) {
  const auto error = test::error_of([&] { value_from_file(file, "a.ckpt/state"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(test::contains(error.what(), "a.ckpt/state: ")) << error.what();
  EXPECT_TRUE(test::contains(error.what(), part)) << error.what();
}

TEST(ValueFile, GivesBackEveryKindOfLeafToTheBit) {
  for (const Value& root : {Value{}, Value{true}, Value{7}, Value{0.5}, Value{"text"},
                            Value{at::arange(3)}, Value{List{}}, Value{Dict{}}}) {
    expect_same(root);
  }
  expect_same(List{INT64_MIN, INT64_MAX, int64_t{0}, true, false, Value{}, at::Tensor{}});
  expect_same(List{0.0, -0.0, 0.1, 1.0, 1e300, Limits::denorm_min(), Limits::max(),
                   Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                   -Limits::quiet_NaN(), std::bit_cast<double>(0x7ff0000000000001U)});
  // NOLINTNEXTLINE(misc-misleading-bidirectional): meant
  expect_same(List{"", "null", "int:3", "%41", "ü\xe2\x80\xae\U0001F600", std::string{"a\0b", 3},
                   "\n<&\"", "\xff", "ü\xff%", "\xed\xa0\x80"});
}

TEST(ValueFile, KeepsTheOrderOfADictAndEveryKey) {
  Dict dict;
  for (const char* key : {"z", "a", "", ".", "..", "a.b", "%", "%2E", "0", "10", "9",
                          "__metadata__", "ü", "\xff", "\xff%", "dict:2", " ", "tensor"}) {
    dict.emplace_back(key, List{key, at::arange(2), Dict{{key, at::rand({2})}, {"x", 1.5}}});
  }
  expect_same(dict);
  expect_same(Dict{{"", Dict{{"", Dict{{"", 1}}}}}});
  expect_same(Dict{{"a", Dict{{"b", 1}}}, {"a.b", 2}, {"a%2Eb", 3}});
  expect_same(List{List{}, Dict{}, List{List{List{}}}, Dict{{"", Dict{}}}});
}

TEST(ValueFile, GivesBackTensorsOfEveryTypeShapeAndStride) {
  List list;
  for (const auto type : {at::kBool, at::kByte, at::kLong, at::kHalf, at::kBFloat16, at::kFloat,
                          at::kDouble, at::kComplexFloat, at::kFloat8_e5m2}) {
    list.emplace_back(at::rand({3, 5}).mul(2).to(type));
    list.emplace_back(at::rand({}).to(type));
    list.emplace_back(at::empty({0, 4}, type));
  }
  list.emplace_back(at::rand({4, 6}).t());
  list.emplace_back(at::rand({2}).requires_grad_());
  expect_same(list);
  EXPECT_EQ(test::error_of([] { value_file_bytes(at::zeros({1}, at::kComplexDouble)); }).kind(),
            ErrorKind::usage);
}

TEST(ValueFile, HasItsTensorsUnderDottedPathsAndReadableTexts) {
  const Value value = Dict{{"type", "Adam"},
                           {"groups", List{Dict{{"lr", 0.1}, {"exp_avg", at::zeros({2})}}}},
                           {"a.b", Value{}}};
  const auto file = parsed(value);
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0].first, "groups.0.exp_avg");
  EXPECT_EQ(file.metadata, (NamedTexts{{".", "dict:3"},
                                       {"type", "string:Adam"},
                                       {"groups", "list:1"},
                                       {"groups.0", "dict:2"},
                                       {"groups.0.lr", "float:0.1"},
                                       {"groups.0.exp_avg", "tensor"},
                                       {"a%2Eb", "null"}}));
  EXPECT_EQ(text_at(parsed("\xff"), "."), "bytes:%FF");
}

TEST(ValueFile, RefusesWhatIsNoValue) {
  const auto tensor = at::zeros({1});
  expect_refused({}, "found the end");
  expect_refused({.metadata = {{"a", "int:1"}}}, "expected metadata '.'");
  expect_refused({.metadata = {{".", "int:1"}, {"a", "int:1"}}}, "'a' is no part");
  expect_refused({.metadata = {{".", "list:2"}, {"0", "int:1"}}}, "found the end");
  expect_refused({.metadata = {{".", "list:99999999999999"}}}, "'0'");
  expect_refused({.metadata = {{".", "list:2"}, {"1", "int:1"}, {"0", "int:1"}}}, "'1'");
  expect_refused({.metadata = {{".", "dict:1"}}}, "entry 0");
  expect_refused({.metadata = {{".", "dict:1"}, {"a", "dict:1"}, {"b", "int:1"}}}, "in 'a'");
  expect_refused({.metadata = {{".", "dict:1"}, {"a", "dict:1"}, {"a.", "int:1"}}}, "in 'a'");
  expect_refused({.metadata = {{".", "dict:1"}, {"a.b", "int:1"}}}, "'a.b'");
  expect_refused({.metadata = {{".", "dict:1"}, {"%61", "int:1"}}}, "'%61'");
  expect_refused({.metadata = {{".", "dict:1"}, {"%2", "int:1"}}}, "'%2'");
  expect_refused({.tensors = {{".", tensor}}, .metadata = {{".", "int:1"}}}, "1 of its tensors");
  expect_refused({.metadata = {{".", "tensor"}}}, "tensor '.' is missing");
  expect_refused({.tensors = {{".", tensor}}, .metadata = {{".", "tensor:"}}},
                 "no text of a value");
  for (const char* text : {"",
                           "1",
                           "int",
                           "int:",
                           "int:1.5",
                           "int: 1",
                           "int:01",
                           "int:9223372036854775808",
                           "int:1x",
                           "bool:1",
                           "bool:TRUE",
                           "null:",
                           "float:",
                           "float:1.0",
                           "float:nan",
                           "float:0x10",
                           "float:0x7ff8000000000000",
                           "float:1e999",
                           "bytes:a",
                           "bytes:%FG",
                           "bytes:%F",

                           "tensor:x",
                           "list",
                           "list:-1",
                           "list:00",
                           "dict:x",
                           "text:a"}) {
    expect_refused({.metadata = {{".", text}}}, "no text of a value");
  }
}

TEST(ValueFile, RefusesTooDeepATreeBothWays) {
  Value deep;
  SafeTensors file;
  std::string path = ".";
  for (int i = 0; i < 64; ++i) {
    deep = List{deep};
    file.metadata.emplace_back(path, "list:1");
    if (i == 0) {
      path = "0";
    } else {
      path += ".0";
    }
  }
  EXPECT_EQ(test::error_of([&] { value_file_bytes(deep); }).kind(), ErrorKind::usage);
  expect_refused(file, "more than 64 levels");
  expect_same(deep.as_list()[0]);
  EXPECT_EQ(test::error_of([] {
              value_file_bytes(Dict{{"a", 1}, {"a", 2}});
            }).kind(),
            ErrorKind::usage);
}

TEST(ValueFile, NeverFallsOverDamagedBytes) {
  const std::string good = value_file_bytes(
      Dict{{"a", List{1, 0.5, at::arange(2), "text"}}, {"b", Dict{{"c", at::rand({3})}}}});
  Rng random{5};
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    bytes[size_t(random.below(int64_t(bytes.size())))] = char(random.below(256));
    if (round % 3 == 0) bytes.resize(size_t(random.below(int64_t(bytes.size()))));
    try {
      value_from_file(parse_safetensors(bytes, "x"));
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace muster
