#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/value/convert.h>

#include <cmath>

enum class Profile { dim, gca, matlab };

constexpr auto enum_names(Profile /*any*/) {
  return std::array{std::pair{"dim", Profile::dim}, std::pair{"gca", Profile::gca},
                    std::pair{"matlab", Profile::matlab}};
}

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

template <>
struct muster::ValueConverter<Colour> {
  static Value write(const Colour& colour) {
    return Value::List{static_cast<int>(colour.red), static_cast<int>(colour.green),
                       static_cast<int>(colour.blue)};
  }
  static void read(const Value& value, Colour& target, const ValuePath& path) {
    if (!value.is_string() || value.as_string() != "black") {
      path.fail_expected("a colour", value);
    }
    target = Colour{};
  }
};

namespace {

using muster::Error;
using muster::from_value;
using muster::to_value;
using muster::Value;

struct Optimizer {
  double learning_rate = 0.1;
  double momentum = 0.9;
};

struct Options {
  int64_t max_epochs = 10;
  std::string run_dir{"runs"};
  Optimizer optimizer{.learning_rate = 0.5};
  std::vector<Optimizer> groups{};
  std::optional<int> seed{};
  std::map<std::string, double> weights{};
  Profile profile = Profile::dim;
};

template <typename T>
T round_trip(const T& object) {
  return from_value<T>(muster::from_bytes(to_bytes(to_value(object))));
}

template <typename T>
void expect_round_trip(const T& object) {
  EXPECT_EQ(round_trip(object), object);
}

/// The message of the Error that reading T from `value` at `path` gives.
template <typename T>
std::string error_of(const Value& value, std::string_view path = "") {
  try {
    (void)from_value<T>(value, path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), muster::ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Convert, BringsBackNumbersAndTexts) {
  expect_round_trip(true);
  expect_round_trip(int8_t{-128});
  expect_round_trip(uint8_t{255});
  expect_round_trip(int64_t{INT64_MIN});
  expect_round_trip(uint64_t{INT64_MAX});
  expect_round_trip(size_t{7});
  expect_round_trip(1.0F / 3);
  expect_round_trip(1.0 / 3);
  expect_round_trip(std::string{"text"});
  expect_round_trip(std::filesystem::path{"/tmp/ä"});
  EXPECT_TRUE(std::isnan(round_trip(std::nanf(""))));
  EXPECT_TRUE(std::isinf(round_trip(HUGE_VALF)));
}

TEST(Convert, BringsBackContainers) {
  expect_round_trip(std::vector<int>{});
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::vector<double>>{{}, {1, 2}, {3}});
  expect_round_trip(std::array<int, 3>{1, 2, 3});
  expect_round_trip(std::pair<int, std::string>{1, "one"});
  expect_round_trip(std::tuple<int, double, std::string>{1, 2.5, "x"});
  expect_round_trip(std::tuple<>{});
  expect_round_trip(std::optional<int>{});
  expect_round_trip(std::optional<int>{4});
  expect_round_trip(std::map<std::string, std::vector<int>>{{"b", {1}}, {"a", {}}});
}

TEST(Convert, BringsBackEnumsByName) {
  EXPECT_EQ(to_value(Profile::gca).as_string(), "gca");
  expect_round_trip(Profile::matlab);
  EXPECT_EQ(error_of<Profile>("gcm", "profile"),
            "profile: expected dim, gca or matlab, found the string \"gcm\"");
}

TEST(Convert, BringsBackStructsWithTensors) {
  struct Matte {
    at::Tensor alpha;
    std::vector<at::Tensor> layers{};
    std::optional<at::Tensor> truth{};
    Optimizer inner{};
    Value extra{};
    int64_t axis = 0;
  };
  const Matte matte{at::arange(4),       {at::arange(2), at::arange(3)},
                    at::arange(5),       {0.25, 0.5},
                    Value::List{1, "x"}, 2};
  const Value value = to_value(matte);
  EXPECT_EQ(value.as_dict()[0].first, "alpha");
  const Matte copy = round_trip(matte);
  EXPECT_TRUE(copy.alpha.equal(matte.alpha));
  ASSERT_EQ(copy.layers.size(), 2);
  EXPECT_TRUE(copy.layers[1].equal(matte.layers[1]));
  EXPECT_TRUE(copy.truth.value().equal(*matte.truth));
  EXPECT_EQ(copy.inner.momentum, 0.5);
  EXPECT_EQ(copy.axis, 2);
  EXPECT_TRUE(identical(to_value(copy), value));
}

TEST(Convert, UsesTheConverterOfAUsersType) {
  EXPECT_EQ(to_json(to_value(Colour{1, 2, 3})), "[1, 2, 3]");
  EXPECT_EQ(from_value<Colour>("black").red, 0);
  EXPECT_EQ(error_of<std::vector<Colour>>(Value::List{"black", "pink"}, "palette"),
            "palette[1]: expected a colour, found the string \"pink\"");
}

TEST(Convert, KeepsTheDefaultsOfMissingKeys) {
  Value value;
  value["optimizer"]["momentum"] = 0.0;
  value["groups"] = Value::List{Value::Dict{{"momentum", 0.5}}};
  const auto options = from_value<Options>(value);
  EXPECT_EQ(options.max_epochs, 10);
  EXPECT_EQ(options.optimizer.momentum, 0.0);
  // The default of the outer struct, not the one of Optimizer.
  EXPECT_EQ(options.optimizer.learning_rate, 0.5);
  EXPECT_EQ(options.groups.at(0).learning_rate, 0.1);
  EXPECT_FALSE(options.seed.has_value());
}

TEST(Convert, ReadsOverWhatIsThere) {
  Options options{.max_epochs = 3, .run_dir = "here", .seed = 4};
  Value value;
  value["max_epochs"] = 7;
  value["seed"] = Value{};
  update_from_value(options, value);
  EXPECT_EQ(options.max_epochs, 7);
  EXPECT_EQ(options.run_dir, "here");
  EXPECT_FALSE(options.seed.has_value());
}

TEST(Convert, TakesAnIntForAFloatButNotTheReverse) {
  EXPECT_EQ(from_value<double>(3), 3.0);
  EXPECT_EQ(from_value<float>(3), 3.0F);
  EXPECT_EQ(error_of<int>(3.0), "expected an int, found the float 3");
  EXPECT_EQ(error_of<int>(true), "expected an int, found the bool true");
  EXPECT_EQ(error_of<bool>(1), "expected a bool, found the int 1");
}

TEST(Convert, ChecksTheRangeOfNumbers) {
  EXPECT_EQ(from_value<int8_t>(-128), -128);
  EXPECT_EQ(error_of<int8_t>(-129), "expected an int from -128 to 127, found the int -129");
  EXPECT_EQ(error_of<int8_t>(128), "expected an int from -128 to 127, found the int 128");
  EXPECT_EQ(error_of<uint16_t>(-1), "expected an int from 0 to 65535, found the int -1");
  EXPECT_EQ(from_value<uint64_t>(INT64_MAX), uint64_t{INT64_MAX});
  EXPECT_EQ(error_of<uint64_t>(-1),
            "expected an int from 0 to 18446744073709551615, found the int -1");
  EXPECT_THROW((void)to_value(uint64_t{1} << 63), Error);
  EXPECT_EQ(error_of<float>(1e39),
            "expected a float of at most 3.40282e+38 in size, found the float 1e+39");
}

TEST(Convert, NamesThePathOfAWrongValue) {
  EXPECT_EQ(error_of<Optimizer>(Value::Dict{{"learning_rate", "fast"}}, "model"),
            "model.learning_rate: expected a float, found the string \"fast\"");
  EXPECT_EQ(error_of<Optimizer>(Value::Dict{{"learning_rate", Value{}}}),
            "learning_rate: expected a float, found null");
  Value value;
  value["groups"] = Value::List{Value::Dict{}, Value::Dict{{"momentum", true}}};
  EXPECT_EQ(error_of<Options>(value, "trainer"),
            "trainer.groups[1].momentum: expected a float, found the bool true");
  Value weights;
  weights["weights"]["head"] = at::arange(3);
  EXPECT_EQ(error_of<Options>(weights), "weights.head: expected a float, found a tensor int64[3]");
  EXPECT_EQ(error_of<Options>(Value::List{1}, "trainer"),
            "trainer: expected a dict, found a list of 1");
  EXPECT_EQ(error_of<std::vector<int>>(Value::Dict{}), "expected a list, found a dict");
  EXPECT_EQ(error_of<std::string>(5, "name"), "name: expected a string, found the int 5");
  EXPECT_EQ(error_of<at::Tensor>(0.5), "expected a tensor, found the float 0.5");
  EXPECT_EQ((error_of<std::array<int, 2>>(Value::List{1, 2, 3})),
            "expected a list of 2, found a list of 3");
}

TEST(Convert, NamesTheClosestKeyToAnUnknownOne) {
  EXPECT_EQ(error_of<Optimizer>(Value::Dict{{"learning_rat", 0.1}}, "model"),
            "model.learning_rat: unknown key; did you mean model.learning_rate?");
  EXPECT_EQ(error_of<Optimizer>(Value::Dict{{"xyz", 0.1}}, "model"),
            "model.xyz: unknown key; known here: learning_rate, momentum");
  Value value;
  value["optimizer"]["momentun"] = 0.1;
  EXPECT_EQ(error_of<Options>(value),
            "optimizer.momentun: unknown key; did you mean optimizer.momentum?");
}

TEST(Convert, ShowsLongAndStrangeTextsSafely) {
  const std::string message = error_of<int>(std::string(10000, 'x') + "\xff");
  EXPECT_LT(message.size(), 200);
  EXPECT_EQ(error_of<int>("\xff"), "expected an int, found the string \"\xef\xbf\xbd\"");
}

}  // namespace
