#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <muster/value/fields.h>
#include <muster/value/value.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

struct Photo {
  at::Tensor image, alpha;
  std::string name{};
};

struct F0 {};
struct F1 {
  int a1 = 0;
};
struct F2 {
  int a1 = 0, a2 = 0;
};
struct F3 {
  int a1 = 0, a2 = 0, a3 = 0;
};
struct F4 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0;
};
struct F5 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0;
};
struct F6 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0;
};
struct F7 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
};
struct F8 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0;
};
struct F9 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0;
};
struct F10 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0;
};
struct F11 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0;
};
struct F12 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0,
      a12 = 0;
};
struct F13 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0,
      a12 = 0, a13 = 0;
};
struct F14 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0,
      a12 = 0, a13 = 0, a14 = 0;
};
struct F15 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0,
      a12 = 0, a13 = 0, a14 = 0, a15 = 0;
};
struct F16 {
  int a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0, a10 = 0, a11 = 0,
      a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0;
};

/// Numbers the fields through for_each_field, and reads them back by name.
template <typename T, size_t N>
void expect_fields() {
  static_assert(muster::field_count<T> == N);
  T object{};
  int number = 0;
  muster::for_each_field(object,
                         [&number](std::string_view /*name*/, int& member) { member = ++number; });
  EXPECT_EQ(number, N);
  int seen = 0;
  const T& constant = object;
  muster::for_each_field(constant, [&seen](std::string_view name, const int& member) {
    ++seen;
    EXPECT_EQ(name, "a" + std::to_string(seen));
    EXPECT_EQ(member, seen);
  });
  EXPECT_EQ(seen, N);
  for (size_t i = 0; i < N; ++i) {
    EXPECT_EQ(muster::field_names<T>()[i], "a" + std::to_string(i + 1));
  }
}

TEST(Fields, CountsNamesAndBindsStructsOfNoneToSixteenMembers) {
  expect_fields<F0, 0>();
  expect_fields<F1, 1>();
  expect_fields<F2, 2>();
  expect_fields<F3, 3>();
  expect_fields<F4, 4>();
  expect_fields<F5, 5>();
  expect_fields<F6, 6>();
  expect_fields<F7, 7>();
  expect_fields<F8, 8>();
  expect_fields<F9, 9>();
  expect_fields<F10, 10>();
  expect_fields<F11, 11>();
  expect_fields<F12, 12>();
  expect_fields<F13, 13>();
  expect_fields<F14, 14>();
  expect_fields<F15, 15>();
  expect_fields<F16, 16>();
}

struct Mixed {
  at::Tensor tensor;
  std::string text{};
  std::vector<at::Tensor> tensors{};
  std::optional<at::Tensor> maybe_tensor{};
  std::optional<std::string> maybe_text{};
  std::map<std::string, at::Tensor> map{};
  std::array<float, 3> array{};
  Photo photo{};
  std::pair<int, std::string> pair{};
  std::tuple<int, double> tuple{};
  std::filesystem::path path{};
  muster::Value value{};
  std::unique_ptr<int> pointer{};
  const int constant = 3;
  bool flag = false;
  F0 empty{};
};

TEST(Fields, ReflectsEveryKindOfMember) {
  constexpr std::array<std::string_view, 16> expected{
      "tensor", "text",  "tensors", "maybe_tensor", "maybe_text", "map",      "array", "photo",
      "pair",   "tuple", "path",    "value",        "pointer",    "constant", "flag",  "empty"};
  static_assert(muster::field_names<Mixed>() == expected);
}

template <typename T>
struct Only {
  T member{};
};

TEST(Fields, ReflectsASingleMemberOfEveryKind) {
  static_assert(muster::field_count<Only<at::Tensor>> == 1);
  static_assert(muster::field_count<Only<std::string>> == 1);
  static_assert(muster::field_count<Only<std::vector<at::Tensor>>> == 1);
  static_assert(muster::field_count<Only<std::optional<at::Tensor>>> == 1);
  static_assert(muster::field_count<Only<std::map<std::string, int>>> == 1);
  static_assert(muster::field_count<Only<std::array<double, 4>>> == 1);
  static_assert(muster::field_count<Only<Photo>> == 1);
  static_assert(muster::field_count<Only<muster::Value>> == 1);
  EXPECT_EQ(muster::field_names<Only<Photo>>()[0], "member");
}

TEST(Fields, GivesReferencesToTheMembersThemselves) {
  Photo photo{at::arange(3), {}, "cat"};
  muster::for_each_field(photo, [](std::string_view name, auto& member) {
    if constexpr (std::is_same_v<decltype(member), std::string&>) {
      EXPECT_EQ(name, "name");
      member += "fish";
    }
  });
  EXPECT_EQ(photo.name, "catfish");
}

TEST(Fields, ReflectsATypeLocalToAFunction) {
  struct Local {
    int first_one = 1;
    std::string größe{};
  };
  EXPECT_EQ(muster::field_names<Local>()[0], "first_one");
  EXPECT_EQ(muster::field_names<Local>()[1], "größe");
}

class Warmup {
  int64_t steps_;
  [[maybe_unused]] int64_t taken_ = 0;

 public:
  explicit Warmup(int64_t steps = 100) : steps_{steps} {}
  static constexpr auto fields = muster::field_list(muster::Field{"steps", &Warmup::steps_});
};

TEST(Fields, TakesTheListOfAClassThatGivesOne) {
  static_assert(muster::field_count<Warmup> == 1);
  static_assert(muster::field_names<Warmup>()[0] == "steps");
  const Warmup warmup{7};
  muster::for_each_field(warmup,
                         [](std::string_view, const int64_t& member) { EXPECT_EQ(member, 7); });
}

TEST(Fields, TellsPlainStructsFromOtherTypes) {
  static_assert(muster::HasFields<Photo>);
  static_assert(muster::HasFields<Warmup>);
  static_assert(!muster::HasFields<std::string>);
  static_assert(!muster::HasFields<std::array<int, 2>>);
  static_assert(!muster::HasFields<std::pair<int, int>>);
  static_assert(!muster::HasFields<at::Tensor>);
  static_assert(!muster::HasFields<muster::Value>);
  static_assert(!muster::HasFields<int>);
}

}  // namespace
