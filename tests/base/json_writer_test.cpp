#include "tests/base/expect_error.h"

#include <muster/base/json_writer.h>

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::error_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Shortest, ReadsBackAsTheSameDouble) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1e300), "1e+300");
  EXPECT_EQ(shortest(5e-324), "5e-324");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(3), "3");
  EXPECT_EQ(shortest(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(shortest(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
  EXPECT_EQ(shortest(123456789.0), "123456789");
  for (const double x : {1e21, 2.5e-5, 9007199254740993.0, 1e-7, 0x1.fffffffffffffp-3}) {
    EXPECT_EQ(std::stod(shortest(x)), x);
  }
}

TEST(Shortest, NamesWhatIsNotFinite) {
  EXPECT_EQ(shortest(std::nan("")), "NaN");
  EXPECT_EQ(shortest(-std::nan("")), "NaN");
  EXPECT_EQ(shortest(kInfinity), "Infinity");
  EXPECT_EQ(shortest(-kInfinity), "-Infinity");
}

TEST(JsonString, EscapesWhatCouldEndItOrAnHtmlPage) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string(R"(a"b\c/)"), R"("a\"b\\c/")");
  EXPECT_EQ(json_string("</script>&"), R"("\u003c/script\u003e\u0026")");
  EXPECT_EQ(json_string(std::string_view{"\0\n\t\x1f\x7f", 5}),
            R"("\u0000\u000a\u0009\u001f\u007f")");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82"),
            "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82\"");
  EXPECT_EQ(json_string("a\xff"
                        "b\xc3"),
            "\"a\xef\xbf\xbd"
            "b\xef\xbf\xbd\"");
}

TEST(JsonWriter, KeepsTheOrderOfTheCalls) {
  JsonWriter json;
  json.begin_object().key("b").value(1).key("a").begin_list();
  json.value(0.5).value("x").value(true).null().begin_object().end_object().end_list();
  json.key("n").value(int64_t{-9007199254740993}).key("r").raw("[1,2]").end_object();
  EXPECT_EQ(json.text(),
            R"({"b": 1, "a": [0.5, "x", true, null, {}], "n": -9007199254740993, "r": [1,2]})");
}

TEST(JsonWriter, IndentsEachLevel) {
  JsonWriter json{2};
  json.begin_object().key("a").begin_list().value(1).value(2).end_list();
  json.key("e").begin_list().end_list().end_object();
  EXPECT_EQ(json.text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"e\": []\n}");
}

TEST(JsonWriter, QuotesNonFiniteNumbersUnlessToldOtherwise) {
  const auto list = [](JsonWriter::NonFinite form) {
    JsonWriter json{0, form};
    json.begin_list().value(std::nan("")).value(kInfinity).value(-kInfinity).value(1.0).end_list();
    return json.text();
  };
  EXPECT_EQ(list(JsonWriter::NonFinite::quoted), R"(["NaN", "Infinity", "-Infinity", 1])");
  EXPECT_EQ(list(JsonWriter::NonFinite::bare), "[NaN, Infinity, -Infinity, 1]");
}

TEST(JsonWriter, HoldsOneValueAlone) {
  JsonWriter json;
  json.value("only");
  EXPECT_EQ(json.text(), R"("only")");
  EXPECT_EQ(error_of([&] { json.value(2); }).kind(), ErrorKind::usage);
}

TEST(JsonWriter, EscapesKeys) {
  JsonWriter json;
  json.begin_object().key("a\"<").value(1).end_object();
  EXPECT_EQ(json.text(), R"({"a\"\u003c": 1})");
}

TEST(JsonWriter, RejectsMisuse) {
  const auto misuse = [](auto action) {
    JsonWriter json;
    return error_of([&] { action(json); }).kind();
  };
  EXPECT_EQ(misuse([](auto& json) { json.begin_object().value(1); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_object().begin_list(); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_object().key("a").key("b"); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_object().key("a").end_object(); }),
            ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_object().end_list(); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_list().end_object(); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_list().key("a"); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.end_list(); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.key("a"); }), ErrorKind::usage);
  EXPECT_EQ(misuse([](auto& json) { json.begin_list().end_list().begin_list(); }),
            ErrorKind::usage);
}

}  // namespace
}  // namespace muster
