#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/track/tensorboard_logger.h>

#include <map>
#include <protozero/pbf_reader.hpp>

#include "track/support.h"

namespace muster {
namespace {

using protozero::pbf_reader;
using test::make_image;
using test::TempDir;

struct Value {
  int64_t step = 0;
  std::string tag{};
  float number = 0;
  std::string plugin{};
  std::string description{};
  std::vector<std::string> strings{};
};

void read_metadata(pbf_reader metadata, Value& value) {
  while (metadata.next()) {
    if (metadata.tag() == 1) {
      pbf_reader plugin{metadata.get_message()};
      value.plugin = plugin.next(1) ? plugin.get_string() : "";
    } else if (metadata.tag() == 3) {
      value.description = metadata.get_string();
    } else {
      metadata.skip();
    }
  }
}

Value read_value(pbf_reader message, int64_t step) {
  Value value{.step = step};
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        value.tag = message.get_string();
        break;
      case 2:
        value.number = message.get_float();
        break;
      case 8: {
        pbf_reader tensor{message.get_message()};
        while (tensor.next(8)) {
          value.strings.push_back(tensor.get_string());
        }
        break;
      }
      case 9:
        read_metadata(message.get_message(), value);
        break;
      default:
        message.skip();
    }
  }
  return value;
}

/// The values in the only event file of `dir`, in order.
std::vector<Value> values_in(const TempDir& dir) {
  std::vector<Value> values;
  bool is_whole = false;
  for (const auto& event : test::read_events(test::files_below(dir.path()).at(0), &is_whole)) {
    int64_t step = 0;
    pbf_reader message{event};
    while (message.next()) {
      if (message.tag() == 2) {
        step = message.get_int64();
      } else if (message.tag() == 5) {
        pbf_reader summary{message.get_message()};
        while (summary.next(1)) {
          values.push_back(read_value(summary.get_message(), step));
        }
      } else {
        message.skip();
      }
    }
  }
  EXPECT_TRUE(is_whole);
  return values;
}

TEST(TensorBoardLogger, WritesScalarsUnderTheirNames) {
  const TempDir dir;
  auto logger = make_tensorboard_logger({.dir = dir.path()});
  logger->log_metrics({.step = 7, .epoch = 2, .values = {{"val/loss", 0.1}, {"big", 1e300}}});
  logger->finish(0);
  const auto values = values_in(dir);
  ASSERT_EQ(values.size(), 3);
  EXPECT_EQ(values[0].tag, "val/loss");
  EXPECT_EQ(values[0].number, 0.1F);
  EXPECT_EQ(values[0].step, 7);
  EXPECT_EQ(values[1].number, std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[2].tag, "epoch");
  EXPECT_EQ(values[2].number, 2.0F);
}

TEST(TensorBoardLogger, WritesTheImagesOfACallAsSamplesOfOneTag) {
  const TempDir dir;
  const TempDir spool;
  auto logger = make_tensorboard_logger({.dir = dir.path()});
  logger->log_images(std::vector{make_image(spool.path(), "eval", 5, 0, "gt", 4, 3, 1),
                                 make_image(spool.path(), "eval", 5, 0, "out", 4, 3, 2),
                                 make_image(spool.path(), "eval", 5, 1, "", 4, 3, 1)});
  const auto values = values_in(dir);
  ASSERT_EQ(values.size(), 2);
  EXPECT_EQ(values[0].tag, "eval/0");
  EXPECT_EQ(values[0].step, 5);
  EXPECT_EQ(values[0].plugin, "images");
  EXPECT_EQ(values[0].description, "gt\n\nout");
  EXPECT_EQ(values[0].strings,
            (std::vector<std::string>{"4", "3", test::gray_png(4, 3, 1), test::gray_png(4, 3, 2)}));
  EXPECT_EQ(values[1].tag, "eval/1");
  EXPECT_EQ(values[1].strings.size(), 3);
}

TEST(TensorBoardLogger, GivesImagesOfTwoSizesAnEventEach) {
  const TempDir dir;
  const TempDir spool;
  auto logger = make_tensorboard_logger({.dir = dir.path()});
  logger->log_images(std::vector{make_image(spool.path(), "k", 0, 3, "a", 4, 3),
                                 make_image(spool.path(), "k", 0, 3, "b", 9, 1)});
  const auto values = values_in(dir);
  ASSERT_EQ(values.size(), 2);
  EXPECT_EQ(values[0].tag, "k/3");
  EXPECT_EQ(values[1].tag, "k/3");
  EXPECT_EQ(values[1].strings, (std::vector<std::string>{"9", "1", test::gray_png(9, 1, 0)}));
}

TEST(TensorBoardLogger, WritesTextsForTheTextTab) {
  const TempDir dir;
  auto logger = make_tensorboard_logger({.dir = dir.path()});
  logger->log_text("note", 4, "bad \xff byte");
  const auto values = values_in(dir);
  ASSERT_EQ(values.size(), 1);
  EXPECT_EQ(values[0].tag, "note/text_summary");
  EXPECT_EQ(values[0].plugin, "text");
  EXPECT_EQ(values[0].strings, (std::vector<std::string>{"bad \xef\xbf\xbd byte"}));
}

TEST(TensorBoardLogger, TakesNothingAfterItsEnd) {
  const TempDir dir;
  auto logger = make_tensorboard_logger({.dir = dir.path()});
  logger->finish(0);
  EXPECT_THROW(logger->log_metrics({.values = {{"a", 1}}}), Error);
}

}  // namespace
}  // namespace muster
