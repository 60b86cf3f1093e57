// write_sample_run DIR [killed]: writes a run with every logger into DIR, and DIR/expected.json,
// which says what the real tools must find in it. With `killed` it says "ready" on stdout after its
// last row, ends nothing and waits to be killed.
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>
#include <muster/track/csv_logger.h>
#include <muster/track/report.h>
#include <muster/track/results.h>
#include <muster/track/tensorboard_logger.h>
#include <muster/track/wandb_logger.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "track/support.h"

namespace {

using muster::ImageRecord;
using muster::Logger;
using muster::MetricsRow;
using muster::test::make_image;

constexpr auto config =
    R"({"seed": 7, "tiny": 1e-05, "model": {"name": "unet", "sizes": [1, 2.5, null]}, "odd: key": "a: b # c"})";

std::vector<MetricsRow> sample_rows() {
  std::vector<MetricsRow> rows;
  for (int64_t i = 0; i < 40; ++i) {
    const double x = static_cast<double>(i);
    rows.push_back({.step = 10 * i,
                    .epoch = i / 10,
                    .values = {{"train/loss", 1 / (1 + x) + 0.01 * std::sin(7 * x)}}});
    if (i % 10 == 9) {
      rows.push_back({.step = 10 * i,
                      .epoch = i / 10,
                      .values = {{"val/unknown/sad", 4.25 + 1 / (x + 3)},
                                 {"val/unknown/mse", 0.1 / (x + 1)},
                                 {"val/all/sad", 9.5 - x / 50},
                                 {"val/all/mse", 1e-17 * x},
                                 {"trimap/unknown/sad", 6.4738261},
                                 {"trimap/unknown/mse", 0.0625},
                                 {"trimap/all/sad", 12.0},
                                 {"\"><script>alert(1)</script>", x}}});
    }
  }
  rows.push_back({.step = 400,
                  .epoch = 4,
                  .values = {{"not/finite", std::nan("")},
                             {"large", 1.7976931348623157e308},
                             {"infinite", -std::numeric_limits<double>::infinity()}}});
  return rows;
}

std::vector<ImageRecord> sample_images(const std::filesystem::path& spool) {
  const std::vector<std::string> hostile{
      "\"><script>alert(1)</script>",
      "javascript:alert(1)",
      "</script><img src=x onerror=alert(1)>",
      "right \xe2\x80\xae to left",  // NOLINT(misc-misleading-bidirectional): meant
      "not utf-8: \xff\xfe",
      "& < > \" ' \\ \n {axis} %s"};
  std::vector<ImageRecord> images;
  for (int i = 0; i < 6; ++i) {
    const auto& caption = hostile[static_cast<size_t>(i)];
    images.push_back(make_image(spool, "eval_output", 400, i, "gt_data_" + caption, 40 + i, 30, i));
    images.push_back(
        make_image(spool, "eval_output", 400, i, "output_" + caption, 40 + i, 30, i + 9));
  }
  int index = 0;
  for (const std::string key :
       {"samples/val", "../up", "a/./b", "/lead", "with space", "[x]*?", "ünï", "50%41#?&"}) {
    images.push_back(make_image(spool, key, 400, index, "", 300, 7, 3));
    images.push_back(make_image(spool, key, 400, index, "second", 5, 64, 4));
    images.push_back(make_image(spool, key, 400, index++, "same bytes", 5, 64, 4));
  }
  return images;
}

muster::Table sample_table() {
  muster::Table table{
      .stage = "validate",
      .name = "val",
      .columns = {"dataset_name", "image_name", "unknown/n", "unknown/sad", "unknown/mse"}};
  for (int64_t i = 0; i < 12; ++i) {
    const double x = static_cast<double>(i * 7 % 12);
    table.rows.push_back({i,
                          {i % 2 == 0 ? "astronaut" : "=cmd()", "image <" + std::to_string(i) + ">",
                           100 + x, x / 3, i == 5 ? muster::Cell{} : muster::Cell{x / 1000}}});
  }
  return table;
}

void write_expected(const std::filesystem::path& path, const std::vector<MetricsRow>& rows,
                    const std::vector<ImageRecord>& images) {
  muster::JsonWriter json{1};
  json.begin_object().key("config").raw(config).key("rows").begin_list();
  for (const auto& row : rows) {
    json.begin_object().key("step").value(row.step).key("epoch").value(row.epoch);
    json.key("values").begin_object();
    for (const auto& [name, value] : row.values) {
      json.key(name).value(value);
    }
    json.end_object().end_object();
  }
  json.end_list().key("images").begin_list();
  for (const auto& image : images) {
    json.begin_object().key("key").value(image.key).key("step").value(image.step);
    json.key("index").value(image.index).key("caption").value(image.caption);
    json.key("width").value(image.width).key("height").value(image.height);
    json.key("sha256").value(image.sha256).end_object();
  }
  json.end_list().end_object();
  muster::write_file_atomically(path, json.text());
}

muster::Report last_values(const std::vector<MetricsRow>& rows) {
  muster::Report report{.stage = "validate", .epoch = 4, .step = 400, .samples = 12};
  for (size_t i = rows.size(); i-- > 0;) {
    for (const auto& [name, value] : rows[i].values) {
      if (!report.get(name)) {
        report.metrics.emplace_back(name, value);
      }
    }
  }
  report.metrics.emplace_back("without/sample", std::nullopt);
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: write_sample_run DIR [killed]\n", stderr);
    return 2;
  }
  const std::filesystem::path dir = argv[1];
  const bool killed = argc > 2;
  const auto rows = sample_rows();
  const auto images = sample_images(dir / "media");
  write_expected(dir / "expected.json", rows, images);

  std::vector<std::unique_ptr<Logger>> loggers;
  loggers.push_back(muster::make_csv_logger({.run_dir = dir}));
  loggers.push_back(muster::make_wandb_logger({.dir = dir, .project = "sample", .name = "a name"}));
  loggers.push_back(muster::make_tensorboard_logger({.dir = dir / "tensorboard"}));
  for (const auto& logger : loggers) {
    logger->log_hyperparameters(config);
    for (const auto& row : rows) {
      logger->log_metrics(row);
    }
    logger->log_images(images);
    logger->log_text("note", 400, "# A text\nwith <b>markup</b>");
  }
  if (killed) {
    std::puts("ready");
    std::fflush(stdout);
    ::pause();
  }
  for (const auto& logger : loggers) {
    logger->finish(0);
  }
  muster::replace_stage(
      dir, {.stage = "fit", .epoch = 4, .step = 400, .metrics = {{"train/loss", 0.0253}}}, {});
  muster::replace_stage(dir, last_values(rows), images);
  muster::write_table(dir, sample_table());
  muster::write_report(dir);
}
