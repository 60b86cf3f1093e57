#include "summary_table_internal.h"

#include <muster/base/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace muster {

namespace {

constexpr size_t columns = 5;
using Row = std::array<std::string, columns>;

/// "812", "4.8 K", "275 K", "2.0 M".
std::string short_count(int64_t count) {
  static constexpr std::array<std::string_view, 5> units{"", " K", " M", " B", " T"};
  auto number = static_cast<double>(count);
  size_t unit = 0;
  while (number >= 1000 && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 || number >= 100 ? format("{}{}", static_cast<int64_t>(number), units[unit])
                                    : format("{:.1f}{}", number, units[unit]);
}

/// Sums over parameters, each once.
class Count {
 public:
  void add_own(const SummaryPart& part) {
    for (const auto& parameter : part.parameters) {
      if (!parameter.defined() || !seen_.insert(parameter.unsafeGetTensorImpl()).second) {
        continue;
      }
      (parameter.requires_grad() ? trainable : frozen) += parameter.numel();
      bytes += parameter.numel() * static_cast<int64_t>(parameter.element_size());
    }
  }
  void add(const SummaryPart& part) {
    add_own(part);
    for (const auto& below : part.parts) {
      add(below);
    }
  }

  int64_t trainable = 0;
  int64_t frozen = 0;
  int64_t bytes = 0;
  [[nodiscard]] int64_t total() const { return trainable + frozen; }

 private:
  std::set<const void*> seen_{};
};

void add_rows(const SummaryPart& parent, const std::string& prefix, int64_t depth,
              std::vector<Row>& rows) {
  if (depth == 0) {
    return;
  }
  for (const auto& part : parent.parts) {
    Count count;
    count.add(part);
    rows.push_back({format("{}", rows.size()), prefix + part.name, part.type,
                    short_count(count.total()), part.training ? "train" : "eval"});
    add_rows(part, prefix + part.name + ".", depth - 1, rows);
  }
}

std::string table(const std::vector<Row>& rows) {
  const Row header{"", "Name", "Type", "Params", "Mode"};
  std::array<size_t, columns> widths{};
  size_t width = 3 * (columns - 1);
  for (size_t column = 0; column < columns; ++column) {
    widths[column] = header[column].size();
    for (const auto& row : rows) {
      widths[column] = std::max(widths[column], row[column].size());
    }
    width += widths[column];
  }
  const auto line = [&](const Row& row) {
    std::string text;
    for (size_t column = 0; column < columns; ++column) {
      const bool right = column == 0 || column == 3;
      const std::string padding(widths[column] - row[column].size(), ' ');
      text += (column == 0 ? "" : " | ") + (right ? padding + row[column] : row[column] + padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  const std::string rule = std::string(width, '-') + "\n";
  std::string text = line(header) + rule;
  for (const auto& row : rows) {
    text += line(row);
  }
  return text + rule;
}

/// How many modules below `part` train, and how many do not.
std::pair<int64_t, int64_t> modes_below(const SummaryPart& part) {
  std::pair<int64_t, int64_t> modes{0, 0};
  for (const auto& below : part.parts) {
    const auto [training, evaluating] = modes_below(below);
    modes.first += training + (below.training ? 1 : 0);
    modes.second += evaluating + (below.training ? 0 : 1);
  }
  return modes;
}

}  // namespace

std::string summary_table(const SummaryPart& root, int64_t max_depth) {
  std::vector<Row> rows;
  add_rows(root, "", max_depth, rows);
  Count all;
  for (const auto& part : root.parts) {
    all.add(part);
  }
  const int64_t of_parts = all.total();
  all.add_own(root);
  if (max_depth != 0 && all.total() > of_parts) {
    rows.push_back({"", "other params", "", short_count(all.total() - of_parts), ""});
  }
  std::string text = rows.empty() ? "" : table(rows);
  const auto add = [&text](const std::string& number, std::string_view what) {
    text += format("{:<10}{}\n", number, what);
  };
  add(short_count(all.trainable), "Trainable params");
  add(short_count(all.frozen), "Non-trainable params");
  add(short_count(all.total()), "Total params");
  add(format("{:.3f}", static_cast<double>(all.bytes) * 1e-6), "Params size (MB)");
  const auto [training, evaluating] = modes_below(root);
  add(format("{}", training), "Modules in train mode");
  add(format("{}", evaluating), "Modules in eval mode");
  return text;
}

}  // namespace muster
