#include "src/track/compare_runs_internal.h"
#include "src/track/report_data_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace muster::track {

namespace {

std::string value_text(const std::optional<double>& value) {
  return value ? shortest(*value) : "no value";
}

std::string count_text(const std::optional<int64_t>& count) {
  return count ? format("{}", *count) : missing;
}

/// Compares two lists of named items whatever their order, then the order. `name_of` tells items
/// apart, `label` and `content` are for people.
template <typename Item, typename NameOf, typename Label, typename Content>
void compare_lists(const std::vector<Item>& first, const std::vector<Item>& second,
                   const NameOf& name_of, const Label& label, const Content& content,
                   const std::string& list, FirstDifference& out) {
  using Name = decltype(name_of(first.front()));
  const auto by_name = [&](const std::vector<Item>& items) {
    std::map<Name, const Item*> map;
    for (const auto& item : items) {
      map.try_emplace(name_of(item), &item);
    }
    return map;
  };
  const auto left = by_name(first);
  const auto right = by_name(second);
  for (const auto& item : first) {
    const auto other = right.find(name_of(item));
    if (other == right.end()) {
      out.add(label(item), content(item), missing);
    } else if (content(item) != content(*other->second)) {
      out.add(label(item), content(item), content(*other->second));
    }
  }
  for (const auto& item : second) {
    if (!left.contains(name_of(item))) {
      out.add(label(item), missing, content(item));
    }
  }
  if (out.any()) {
    return;
  }
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (name_of(first[i]) != name_of(second[i])) {
      out.add(format("place {} in the order of {}", i + 1, list), label(first[i]),
              label(second[i]));
      return;
    }
  }
}

std::string image_label(const ReportImage& image, const std::string& stage) {
  const std::string caption = image.caption.empty() ? "" : format(" \"{}\"", image.caption);
  return format("image {}{} of sample {}, step {}, of {}", image.key, caption, image.index,
                image.step, stage);
}

std::string image_content(const ReportImage& image) {
  return format("{} x {}, sha256 {}", image.width, image.height, image.sha256);
}

/// The first difference of each kind over all stages.
struct Kinds {
  FirstDifference stages{};
  FirstDifference samples{};
  FirstDifference metrics{};
  FirstDifference images{};

  [[nodiscard]] bool any() const {
    return stages.any() || samples.any() || metrics.any() || images.any();
  }

  void compare(const ReportStage& first, const ReportStage& second) {
    const std::string& stage = first.name;
    if (first.samples != second.samples) {
      samples.add("samples of " + stage, count_text(first.samples), count_text(second.samples));
    }
    compare_lists(
        first.metrics, second.metrics, [](const ReportMetric& metric) { return metric.name; },
        [&](const ReportMetric& metric) { return format("metric {} of {}", metric.name, stage); },
        [](const ReportMetric& metric) { return value_text(metric.value); },
        "the metrics of " + stage, metrics);
    compare_lists(
        first.images, second.images,
        [](const ReportImage& image) {
          return std::tuple{image.key, image.step, image.index, image.caption};
        },
        [&](const ReportImage& image) { return image_label(image, stage); }, image_content,
        "the images of " + stage, images);
  }
};

const ReportStage* find_stage(const std::vector<ReportStage>& stages, const std::string& name) {
  const auto found = std::find_if(stages.begin(), stages.end(),
                                  [&](const ReportStage& stage) { return stage.name == name; });
  return found == stages.end() ? nullptr : &*found;
}

RunContents contents_of(const std::vector<ReportStage>& stages) {
  RunContents contents;
  for (const auto& stage : stages) {
    contents.metrics += static_cast<int64_t>(stage.metrics.size());
    contents.samples += stage.samples.value_or(0);
    contents.images += static_cast<int64_t>(stage.images.size());
  }
  return contents;
}

}  // namespace

void compare_results(const std::filesystem::path& first, const std::filesystem::path& second,
                     RunComparison& out) {
  const std::string name = "results.json";
  const std::string left_text = read_file(first / name);
  const std::string right_text = read_file(second / name);
  const auto left = read_results(first / name);
  const auto right = read_results(second / name);
  out.contents = contents_of(left);
  if (left_text == right_text) {
    return;
  }
  Kinds kinds;
  for (const auto& stage : left) {
    if (const auto* other = find_stage(right, stage.name)) {
      kinds.compare(stage, *other);
    } else {
      kinds.stages.add("stage " + stage.name, there, missing);
    }
  }
  for (const auto& stage : right) {
    if (find_stage(left, stage.name) == nullptr) {
      kinds.stages.add("stage " + stage.name, missing, there);
    }
  }
  if (!kinds.any()) {
    out.differences.push_back(differing_line(name, left_text, right_text));
  }
  for (auto* kind : {&kinds.stages, &kinds.samples, &kinds.metrics, &kinds.images}) {
    kind->take_into(out.differences);
  }
}

}  // namespace muster::track
