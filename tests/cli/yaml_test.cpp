#include "src/cli/yaml_internal.h"
#include "support/texts.h"

#include <muster/base/error.h>

#include <gtest/gtest.h>

#include <cmath>

namespace muster::test {
namespace {

std::string message_of(const std::string& yaml) {
  try {
    parse_yaml(yaml, "a.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error for " << yaml.substr(0, 60);
  return {};
}

TEST(Yaml, PlainScalarsTakeTheTypeTheyLookLike) {
  const Value v = parse_yaml(
      "{i: 3, neg: -4, f: 1.0, e: 1e-4, yes: true, no: False, nothing: null, tilde: ~, empty: , "
      "word: fast, quoted: "
      "\"3\", inf: .inf, version: 1.2.3, date: 2024-01-02, minus: -, hex: 0x10, plus: +5, "
      "signs: +-5}",
      "a.yaml");
  EXPECT_EQ(v.find("i")->as_int(), 3);
  EXPECT_EQ(v.find("neg")->as_int(), -4);
  EXPECT_EQ(v.find("plus")->as_int(), 5);
  EXPECT_TRUE(v.find("f")->is_double());
  EXPECT_EQ(v.find("e")->as_double(), 1e-4);
  EXPECT_TRUE(v.find("yes")->as_bool());
  EXPECT_FALSE(v.find("no")->as_bool());
  for (const auto* key : {"nothing", "tilde", "empty"}) {
    EXPECT_TRUE(v.find(key)->is_null()) << key;
  }
  for (const auto* key : {"word", "quoted", "version", "date", "minus", "hex", "signs"}) {
    EXPECT_TRUE(v.find(key)->is_string()) << key;
  }
  EXPECT_TRUE(std::isinf(v.find("inf")->as_double()));
}

TEST(Yaml, WhatIsWrittenReadsBackAsTheSameTree) {
  Value v = Value::Dict{};
  v["whole"] = 7;
  v["one"] = 1.0;
  v["big"] = 1e300;
  v["nan"] = std::nan("");
  v["text"] = "a: b # c";
  v["number-like"] = "12";
  v["null-like"] = "null";
  v["nothing"] = Value{};
  v["flag"] = true;
  v["list"] = Value::List{1, 2.5, "x"};
  v["inner"]["deep"] = "line\nbreak";
  EXPECT_TRUE(identical(parse_yaml(to_yaml(v), "written"), v)) << to_yaml(v);
}

TEST(Yaml, AnyTextReadsBackAsTheSameText) {
  const std::vector<std::string> pieces{"a",    "[",  "{",
                                        "]",    "}",  "\"",
                                        "'",    ": ", " #",
                                        "-",    "- ", "*",
                                        "&x",   "!",  "|",
                                        ">",    "%",  "@",
                                        "`",    " ",  "\n",
                                        "\t",   "~",  "null",
                                        "true", "1",  ".5e3",
                                        "?",    "? ", "\xc3\xa9",
                                        ",",    "=",  "---",
                                        "...",  "\\", "0x1",
                                        "<<",   "\r", "\xe2\x80\xa8",
                                        "\x01", "$"};
  uint32_t random = 1;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const uint32_t length = round % 6;
    for (uint32_t i = 0; i < length; ++i) {
      random = random * 1664525U + 1013904223U;
      text += pieces[(random >> 8U) % pieces.size()];
    }
    Value v = Value::Dict{};
    v["text"] = text;
    v["list"] = Value::List{text, 1};
    v["inner"][text] = 2;
    ASSERT_TRUE(identical(parse_yaml(to_yaml(v), "written"), v)) << to_yaml(v);
  }
}

TEST(Yaml, TextThatIsNotUtf8IsRefusedInFilesAndWrittenWithReplacements) {
  EXPECT_TRUE(has(message_of("a: \xe9t\xe9\n"), "a.yaml: this is not YAML"));
  EXPECT_TRUE(has(message_of("a: \xc0\xaf\n"), "UTF-8"));
  EXPECT_TRUE(has(message_of(std::string{"a\0\0\0:\0\0\0", 8}), "zero bytes"));
  EXPECT_TRUE(has(message_of(std::string{"\xff\xfe"
                                         "a\0:\0",
                                         6}),
                  "UTF-8"));
  EXPECT_TRUE(has(message_of("a: \"x\\_y\"\n"), "a.yaml:1: the escapes"));
  const Value value = Value::Dict{{"dir", "\xe9t\xe9"}};
  EXPECT_EQ(parse_yaml(to_yaml(value), "written").find("dir")->as_string(),
            "\xef\xbf\xbdt\xef\xbf\xbd");
}

TEST(Yaml, OrdinaryFilesAreNotTakenForHostileOnes) {
  std::string points = "points: [";
  for (int i = 0; i < 200; ++i) {
    points += "{x: 1, y: 2}, ";
  }
  EXPECT_EQ(parse_yaml(points + "]\n", "a").find("points")->as_list().size(), 200U);
  const Value v = parse_yaml(
      "# all of a * b - c *really* [[[[ not ]] a list, {{{{{ nor a map: - - - - - - - - - - - - - -"
      " - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -"
      " - - - - - - - - - - - - - - - - - - - - -\n"
      "url: http://user@host:8080/a?b=c&d=*#e\n"
      "quoted: \"[*.png, {*.jpg\"\n"
      "glob: data/ *.png\n"
      "product: 2 * 3\n"
      "anchor: &unused 4\n"
      "block: |\n  - a: *b\n  [ {\n",
      "a");
  EXPECT_EQ(v.find("url")->as_string(), "http://user@host:8080/a?b=c&d=*#e");
  EXPECT_EQ(v.find("quoted")->as_string(), "[*.png, {*.jpg");
  EXPECT_EQ(v.find("glob")->as_string(), "data/ *.png");
  EXPECT_EQ(v.find("product")->as_string(), "2 * 3");
  EXPECT_EQ(v.find("anchor")->as_int(), 4);
  EXPECT_EQ(v.find("block")->as_string(), "- a: *b\n[ {\n");
}

TEST(Yaml, HostileInputIsRefusedBeforeItCosts) {
  EXPECT_TRUE(has(message_of("a: &x [1]\nb: *x\n"), "a.yaml:2: aliases"));
  EXPECT_TRUE(has(message_of("a: &x [1]\nb: [*x,*x]\n"), "aliases"));
  std::string closers;
  for (int i = 0; i < 300; ++i) {
    closers += "[\"]\",";
  }
  EXPECT_TRUE(has(message_of(closers + std::string(300, ']')), "levels"));
  std::string stairs;
  for (int i = 0; i < 1'000; ++i) {
    stairs += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  }
  EXPECT_TRUE(has(message_of(stairs), "levels"));
  std::string many = "[";
  for (int i = 0; i < 200'000; ++i) {
    many += "1,";
  }
  EXPECT_TRUE(has(message_of(many + "]"), "values"));
  EXPECT_TRUE(has(message_of("a: 1\n---\nb: 2\n"), "second document"));
  EXPECT_TRUE(has(message_of("{[1]: 2}\n"), "a key must be a text"));
  EXPECT_TRUE(has(message_of("a: !!python/object x\n"), "tag"));
  EXPECT_TRUE(has(message_of(std::string(1'000, '[') + std::string(1'000, ']')), "levels"));
  EXPECT_TRUE(has(message_of(std::string(100'000, '[')), "a bracket is not closed"));
  EXPECT_TRUE(has(message_of(std::string(100'000, '{')), "a bracket is not closed"));
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) {
    dashes += "- ";
  }
  EXPECT_TRUE(has(message_of(dashes), "levels"));
  EXPECT_TRUE(has(message_of(std::string(2U << 20U, 'a')), "at most"));
  EXPECT_TRUE(has(message_of("a: 1\na: 2\n"), "twice"));
  EXPECT_TRUE(has(message_of("a: [1, 2\nb: 3\n"), "a.yaml:"));
}

TEST(Yaml, EveryTruncationOfADocumentIsReadOrRefusedWithOneError) {
  const std::string text =
      "trainer: {devices: 2, limit_val_batches: 0.5}\nmodel:\n  - [a, 'b', \"c\\n\"]\n  - k: |\n   "
      "   t\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    try {
      parse_yaml(text.substr(0, size), "cut");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
}

}  // namespace
}  // namespace muster::test
