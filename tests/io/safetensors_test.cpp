#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/files.h>
#include <muster/base/random.h>
#include <muster/io/safetensors.h>

#include <algorithm>
#include <cstring>

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

namespace muster {
namespace {

/// A file with that header and that many zero bytes behind it.
std::string file_with(const std::string& header, size_t data_bytes) {
  const auto length = static_cast<uint64_t>(header.size());
  return std::string{reinterpret_cast<const char*>(&length), 8} + header +
         std::string(data_bytes, '\0');
}

std::string tensor_of(const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

class SafeTensorsFile : public testing::Test {
 protected:
  std::filesystem::path save(const std::string& bytes) {
    auto path = folder_ / "a.safetensors";
    write_file_atomically(path, bytes, Durability::process);
    return path;
  }

  void expect_refused(const std::string& bytes, const std::string& part) {
    const auto path = save(bytes);
    const auto error = test::error_of([&] { load_safetensors(path); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(test::contains(error.what(), part)) << error.what();
    EXPECT_TRUE(test::contains(error.what(), path.native())) << error.what();
  }

  test::TempFolder folder_;
};

TEST_F(SafeTensorsFile, GivesBackEveryTypeAndShape) {
  NamedTensors tensors;
  for (const auto type :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
        at::kFloat, at::kDouble, at::kUInt16, at::kUInt32, at::kUInt64, at::kFloat8_e4m3fn,
        at::kFloat8_e5m2, at::kComplexFloat}) {
    const std::string name = c10::toString(type);
    tensors.emplace_back(name + ".weight", at::rand({3, 5}).mul(2).to(type));
    tensors.emplace_back(name + ".scalar", at::rand({}).to(type));
    tensors.emplace_back(name + ".empty", at::empty({0, 4}, type));
  }
  const auto path = folder_ / "all.safetensors";
  save_safetensors(path, tensors, {{"format", "pt"}, {"note", "<\"\n>"}});
  const auto loaded = load_safetensors(path);
  EXPECT_EQ(loaded.metadata, (NamedTexts{{"format", "pt"}, {"note", "<\"\n>"}}));
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : loaded.tensors) {
    const auto same = std::find_if(tensors.begin(), tensors.end(),
                                   [&, &name = name](const auto& t) { return t.first == name; });
    ASSERT_NE(same, tensors.end());
    EXPECT_EQ(tensor.scalar_type(), same->second.scalar_type());
    EXPECT_EQ(tensor.sizes(), same->second.sizes());
    if (tensor.nbytes() == 0) continue;
    EXPECT_EQ(0, memcmp(tensor.const_data_ptr(), same->second.const_data_ptr(), tensor.nbytes()));
  }
}

TEST_F(SafeTensorsFile, WritesTheSameBytesWhateverTheOrderAndTheStrides) {
  const auto a = at::rand({4, 6});
  const auto b = at::arange(5);
  const auto straight = safetensors_bytes({{"a", a}, {"b", b}});
  EXPECT_EQ(straight, safetensors_bytes({{"b", b}, {"a", a.t().contiguous().t()}}));
  EXPECT_EQ((straight.size() - a.nbytes() - b.nbytes()) % 8, 0U);
  const auto loaded = load_safetensors(save(straight));
  EXPECT_EQ(loaded.tensors[0].first, "b");  // 8-byte elements stand first
  EXPECT_TRUE(at::equal(loaded.tensors[1].second, a));
}

TEST_F(SafeTensorsFile, RefusesToWriteWhatTheFormatCannotHold) {
  const auto tensor = at::zeros({1});
  const auto refused = [](const NamedTensors& tensors) {
    return test::error_of([&] { safetensors_bytes(tensors); }).kind() == ErrorKind::usage;
  };
  EXPECT_TRUE(refused({{"a", tensor}, {"b", tensor}, {"a", tensor}}));
  EXPECT_TRUE(refused({{"__metadata__", tensor}}));
  EXPECT_TRUE(refused({{"a", at::zeros({1}, at::kComplexDouble)}}));
  EXPECT_TRUE(refused({{"a", at::Tensor{}}}));
}

TEST_F(SafeTensorsFile, RefusesWhatIsNoHeader) {
  expect_refused("", "0 bytes");
  expect_refused("1234567", "7 bytes");
  expect_refused(std::string(8, '\xff'), "header of 18446744073709551615 bytes");
  expect_refused(file_with("{}", 0).substr(0, 9), "cut short");
  expect_refused(file_with("", 0), "brace");
  expect_refused(file_with(" {}", 0), "brace");
  expect_refused(file_with("[]", 0), "brace");
  expect_refused(file_with("{\"a\":", 0), "no JSON");
  expect_refused(file_with("{}{}", 0), "no JSON");
  expect_refused(file_with(std::string{"{}\0", 3}, 0), "no JSON");
  expect_refused(file_with("{\"\xff\":{}}", 0), "no JSON");
  expect_refused(file_with("{}", 3), "3 bytes follow");
  EXPECT_TRUE(load_safetensors(save(file_with("{}  ", 0))).tensors.empty());
}

TEST_F(SafeTensorsFile, RefusesHeadersThatSayWrongThings) {
  const auto good = tensor_of("F32", "[2]", "[0,8]");
  expect_refused(file_with("{\"a\":" + good + ",\"a\":" + good + "}", 8), "names 'a' twice");
  expect_refused(file_with(R"({"a":{"dtype":"F32","dtype":"F32"}})", 8), "'dtype' twice in 'a'");
  expect_refused(file_with(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "'a' lacks");
  expect_refused(file_with(R"({"a":{"dtype":"F32","shape":[2],"strides":[1]}})", 8), "'strides'");
  expect_refused(file_with("{\"a\":" + tensor_of("F31", "[2]", "[0,8]") + "}", 8), "'F31'");
  expect_refused(file_with("{\"a\":" + tensor_of("F32", "[-2]", "[0,8]") + "}", 8), "negative");
  expect_refused(file_with("{\"a\":" + tensor_of("F32", "[2.0]", "[0,8]") + "}", 8), "fraction");
  expect_refused(file_with("{\"a\":" + tensor_of("F32", "[[2]]", "[0,8]") + "}", 8), "a list");
  expect_refused(file_with("{\"a\":" + tensor_of("F32", "2", "[0,8]") + "}", 8), "a number");
  expect_refused(file_with("{\"a\":" + tensor_of("F32", "[2]", "[0,8,8]") + "}", 8), "'a' lacks");
  expect_refused(file_with(R"({"a":{"dtype":{}}})", 8), "an object");
  expect_refused(file_with("{\"a\":3}", 8), "a number");
  expect_refused(file_with("{\"a\":null}", 8), "null");
  expect_refused(file_with(R"({"__metadata__":{"a":1}})", 0), "a number");
  expect_refused(file_with(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "'a' twice");
  expect_refused(file_with("{\"a\":" + std::string(100'000, '['), 0), "a list");
}

TEST_F(SafeTensorsFile, RefusesTensorsThatDoNotFillTheFile) {
  const auto with = [](const std::string& a, const std::string& b, size_t bytes) {
    return file_with("{\"a\":" + a + ",\"b\":" + b + "}", bytes);
  };
  const auto a = tensor_of("F32", "[2]", "[0,8]");
  EXPECT_EQ(load_safetensors(save(with(a, tensor_of("U8", "[3]", "[8,11]"), 11))).tensors.size(),
            2U);
  expect_refused(with(a, tensor_of("U8", "[3]", "[9,12]"), 12), "a gap");
  expect_refused(with(a, tensor_of("U8", "[3]", "[7,10]"), 10), "overlap");
  expect_refused(with(a, tensor_of("U8", "[3]", "[8,12]"), 12), "needs 3 bytes");
  expect_refused(with(a, tensor_of("U8", "[3]", "[8,5]"), 8), "needs 3 bytes");
  expect_refused(with(a, tensor_of("U8", "[3]", "[8,11]"), 10), "cut short: tensor 'b'");
  expect_refused(with(a, tensor_of("U8", "[3]", "[8,11]"), 12), "1 bytes follow");
  const std::string large = "4294967296";
  expect_refused(with(a, tensor_of("U8", "[" + large + "," + large + "]", "[8,8]"), 8),
                 "too large");
  expect_refused(with(a, tensor_of("U8", "[0," + large + "," + large + "]", "[8,8]"), 8),
                 "too large");
  expect_refused(with(a, tensor_of("F64", "[9223372036854775807]", "[8,16]"), 16), "too large");
  expect_refused(with(a, tensor_of("U8", "[9223372036854775808]", "[8,16]"), 16), "too large");
}

TEST_F(SafeTensorsFile, RefusesABoolThatIsNeitherTrueNorFalse) {
  auto bytes = file_with("{\"a\":" + tensor_of("BOOL", "[2]", "[0,2]") + "}", 2);
  bytes.back() = 2;
  expect_refused(bytes, "'a' of BOOL");
}

TEST_F(SafeTensorsFile, NamesAFileThatIsMissingOrAFolder) {
  EXPECT_EQ(test::error_of([&] { load_safetensors(folder_ / "none"); }).kind(), ErrorKind::data);
  EXPECT_EQ(test::error_of([&] { load_safetensors(folder_.path()); }).kind(), ErrorKind::data);
}

TEST_F(SafeTensorsFile, SurvivesTruncationAndDamageOfTheHeader) {
  const auto whole =
      safetensors_bytes({{"a", at::rand({3, 2})}, {"b", at::rand({4})}}, {{"k", "v"}});
  for (size_t part = 0; part < 16; ++part) {
    expect_refused(whole.substr(0, whole.size() * part / 16), "");
  }
  Rng rng{1};
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    auto damaged = whole;
    const auto header = static_cast<int64_t>(whole.size()) - 40;
    for (int64_t flips = 1 + rng.below(3); flips > 0; --flips) {
      const auto at = static_cast<size_t>(rng.below(header));
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << rng.below(8));
    }
    try {
      load_safetensors(save(damaged));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace muster
