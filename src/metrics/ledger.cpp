#include <muster/base/check.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/ledger.h>
#include <muster/value/convert.h>
#include <muster/value/value.h>

#include "src/metrics/state_internal.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace muster {

namespace {

double extreme_of(double left, double right, ReduceFx reduce) {
  return reduce == ReduceFx::min ? lower(left, right) : upper(left, right);
}

bool is_sum(ReduceFx reduce) { return reduce == ReduceFx::mean || reduce == ReduceFx::sum; }

Value moment_value(const Moment& moment) {
  return Value::List{moment.loader, moment.batch, moment.call};
}

Moment value_moment(const Value& value) {
  const auto& parts = value.as_list();
  return {parts.at(0).as_int(), parts.at(1).as_int(), parts.at(2).as_int()};
}

Value image_value(const LoggedImage& image) {
  const auto& record = image.record;
  return Value::List{
      record.key,    record.step,   record.index, record.caption, record.width,
      record.height, record.sha256, record.file,  image.loader,   moment_value(image.moment),
      image.place};
}

LoggedImage value_image(const Value& value) {
  const auto& v = value.as_list();
  return {.record = {.key = v.at(0).as_string(),
                     .step = v.at(1).as_int(),
                     .index = v.at(2).as_int(),
                     .caption = v.at(3).as_string(),
                     .width = v.at(4).as_int(),
                     .height = v.at(5).as_int(),
                     .sha256 = v.at(6).as_string(),
                     .file = v.at(7).as_string()},
          .loader = v.at(8).as_int(),
          .moment = value_moment(v.at(9)),
          .place = v.at(10).as_int()};
}

Value row_value(int64_t index, const std::vector<Cell>& cells) {
  Value::List values{index};
  for (const auto& cell : cells) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
      values.emplace_back(*text);
    } else if (const auto* number = std::get_if<double>(&cell)) {
      values.emplace_back(*number);
    } else {
      values.emplace_back();
    }
  }
  return values;
}

Table::Row value_row(const Value& value) {
  const auto& parts = value.as_list();
  Table::Row row{.index = parts.at(0).as_int()};
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].is_null()) {
      row.cells.emplace_back();
    } else if (parts[i].is_string()) {
      row.cells.emplace_back(parts[i].as_string());
    } else {
      row.cells.emplace_back(parts[i].as_double());
    }
  }
  return row;
}

/// Cells of two ranks are the same when their bits are: a NaN equals itself.
bool same_cells(const std::vector<Cell>& left, const std::vector<Cell>& right) {
  return identical(row_value(0, left), row_value(0, right));
}

/// The moment less what each rank counts for itself.
Moment shared_moment(const Moment& moment) {
  return moment.in_batch() ? moment : Moment{moment.loader, moment.batch, 0};
}

}  // namespace

std::string_view to_string(ReduceFx reduce) {
  switch (reduce) {
    case ReduceFx::mean:
      return "mean";
    case ReduceFx::sum:
      return "sum";
    case ReduceFx::min:
      return "min";
    case ReduceFx::max:
      return "max";
  }
  return "";
}

void Ledger::combine(Entry& entry, const Entry& other) const {
  if (other.reduce == ReduceFx::min || other.reduce == ReduceFx::max) {
    entry.extreme = entry.count == 0   ? other.extreme
                    : other.count == 0 ? entry.extreme
                                       : extreme_of(entry.extreme, other.extreme, other.reduce);
  } else {
    entry.sum.merge(other.sum);
  }
  add_count(entry.count, other.count);
  entry.first = std::min(entry.first, other.first);
}

void Ledger::log(std::string_view name, double value, int64_t weight, ReduceFx reduce,
                 const Moment& moment) {
  check(!name.empty(), "log: a value needs a name");
  check(weight >= 0, "log of {}: a weight counts samples and is 0 or more, not {}", name, weight);
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string{name}, Entry{.reduce = reduce, .first = moment}).first;
  }
  Entry& entry = found->second;
  check(entry.reduce == reduce,
        "{} was logged with reduce_fx {} before and with {} now; give the second another name",
        name, to_string(entry.reduce), to_string(reduce));
  if (reduce == ReduceFx::mean) {
    add_count(entry.count, weight);
    entry.sum.add(value, weight);
    return;
  }
  if (reduce == ReduceFx::sum) {
    entry.sum.add(value);
  } else {
    entry.extreme = entry.count == 0 ? value : extreme_of(entry.extreme, value, reduce);
  }
  ++entry.count;
}

Ledger::Rows& Ledger::rows_of(std::string_view table, const std::vector<std::string>& columns) {
  const auto found = tables_.find(table);
  if (found != tables_.end()) {
    check(found->second.columns == columns,
          "the table {} got rows of other columns than before; a table has one set of columns",
          table);
    return found->second;
  }
  std::set<std::string_view> names{"index"};
  for (const auto& column : columns) {
    check(names.insert(column).second,
          "the table {} has two columns called {} (its first, index, is there always)", table,
          column);
  }
  return tables_.emplace(std::string{table}, Rows{.columns = columns}).first->second;
}

void Ledger::add_row(std::string_view table, const std::vector<std::string>& columns,
                     Table::Row row) {
  Rows& rows = rows_of(table, columns);
  check(row.cells.size() == columns.size(), "a row of the table {} has {} cells for {} columns",
        table, row.cells.size(), columns.size());
  check(rows.by_index.try_emplace(row.index, std::move(row.cells)).second,
        "sample {} has a row in the table {} already; log one a sample, with its global index",
        row.index, table);
}

void Ledger::add_image(LoggedImage image) { images_.push_back(std::move(image)); }

void Ledger::relocate_images(const std::function<std::string(const ImageRecord&)>& file_of) {
  for (auto& image : images_) {
    image.record.file = file_of(image.record);
  }
}

void Ledger::add_text(LoggedText text) { texts_.push_back(std::move(text)); }

std::string Ledger::state() const {
  StateWriter entries;  // there are many, and a tree of values is dear to build and to read
  for (const auto& [name, entry] : entries_) {
    entries.text(name);
    entries.integer(static_cast<int64_t>(entry.reduce));
    entries.integer(entry.count);
    entries.integer(entry.first.loader);
    entries.integer(entry.first.batch);
    entries.integer(entry.first.call);
    if (is_sum(entry.reduce)) {
      entries.sum(entry.sum);
    } else {
      entries.number(entry.extreme);
    }
  }
  Value::List tables;
  for (const auto& [name, table] : tables_) {
    Value::List rows;
    for (const auto& [index, cells] : table.by_index) {
      rows.push_back(row_value(index, cells));
    }
    tables.emplace_back(Value::List{name, to_value(table.columns), std::move(rows)});
  }
  Value::List images;
  for (const auto& image : images_) {
    images.push_back(image_value(image));
  }
  Value::List texts;
  for (const auto& text : texts_) {
    texts.emplace_back(Value::List{text.key, text.text, moment_value(text.moment)});
  }
  return to_bytes(Value::List{samples_, entries.take(), std::move(tables), std::move(images),
                              std::move(texts)});
}

void Ledger::merge(std::string_view state) {
  const Value value = from_bytes(state);
  const auto& parts = value.as_list();
  samples_ += parts.at(0).as_int();
  for (StateReader entries{parts.at(1).as_string()}; !entries.at_end();) {
    const std::string_view name = entries.text();
    Entry other{.reduce = static_cast<ReduceFx>(entries.integer()), .count = entries.integer()};
    other.first = {entries.integer(), entries.integer(), entries.integer()};
    if (is_sum(other.reduce)) {
      other.sum = entries.sum();
    } else {
      other.extreme = entries.number();
    }
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      entries_.emplace(name, other);
      continue;
    }
    check(found->second.reduce == other.reduce,
          "{} was logged with reduce_fx {} on one rank and {} on another; use one", name,
          to_string(found->second.reduce), to_string(other.reduce));
    combine(found->second, other);
  }
  for (const auto& item : parts.at(2).as_list()) {
    const auto& v = item.as_list();
    const auto columns = from_value<std::vector<std::string>>(v.at(1));
    Rows& rows = rows_of(v.at(0).as_string(), columns);
    for (const auto& row_parts : v.at(2).as_list()) {
      auto row = value_row(row_parts);
      const auto [place, fresh] = rows.by_index.try_emplace(row.index, row.cells);
      check(fresh || same_cells(place->second, row.cells),
            "two ranks gave different rows of sample {} for the table {}; a sample has one row",
            row.index, v.at(0).as_string());
    }
  }
  for (const auto& item : parts.at(3).as_list()) {
    images_.push_back(value_image(item));
  }
  for (const auto& item : parts.at(4).as_list()) {
    const auto& v = item.as_list();
    texts_.push_back({v.at(0).as_string(), v.at(1).as_string(), value_moment(v.at(2))});
  }
}

std::vector<std::pair<std::string, std::optional<double>>> Ledger::values() const {
  std::vector<const std::pair<const std::string, Entry>*> order;
  order.reserve(entries_.size());
  for (const auto& item : entries_) {
    order.push_back(&item);
  }
  // The map has put them by name, which decides within a hook around the loaders.
  std::stable_sort(order.begin(), order.end(), [](const auto* left, const auto* right) {
    return shared_moment(left->second.first) < shared_moment(right->second.first);
  });
  std::vector<std::pair<std::string, std::optional<double>>> out;
  for (const auto* item : order) {
    const Entry& entry = item->second;
    std::optional<double> value;
    if (entry.count > 0) {
      value = entry.reduce == ReduceFx::mean  ? entry.sum.mean(entry.count)
              : entry.reduce == ReduceFx::sum ? entry.sum.sum()
                                              : entry.extreme;
    }
    out.emplace_back(item->first, value);
  }
  return out;
}

std::vector<LoggedImage> Ledger::images() const {
  auto images = images_;
  const auto key = [](const LoggedImage& image) {
    const bool in_batch = image.moment.in_batch();
    const int hook = in_batch ? 0 : image.moment.batch == Moment::before ? -1 : 1;
    const std::string_view name = in_batch ? std::string_view{} : image.record.key;
    return std::tuple{image.record.step, image.loader, image.record.index, hook, name,
                      image.moment.call, image.place};
  };
  std::stable_sort(images.begin(), images.end(),
                   [&](const auto& left, const auto& right) { return key(left) < key(right); });
  using Identity = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, std::string, std::string,
                              std::string>;
  std::set<Identity> seen;
  std::erase_if(images, [&seen](const LoggedImage& image) {
    const auto& record = image.record;
    return !image.moment.in_batch() &&
           !seen.insert({record.step, image.loader, record.index, image.moment.batch, image.place,
                         record.key, record.caption, record.sha256})
                .second;
  });
  return images;
}

std::vector<LoggedText> Ledger::texts() const {
  auto texts = texts_;
  const auto key = [](const LoggedText& text) {
    const bool in_batch = text.moment.in_batch();
    return std::tuple{shared_moment(text.moment), in_batch ? std::string_view{} : text.key,
                      in_batch ? std::string_view{} : text.text};
  };
  std::stable_sort(texts.begin(), texts.end(),
                   [&](const auto& left, const auto& right) { return key(left) < key(right); });
  const auto alike = [&](const LoggedText& left, const LoggedText& right) {
    return !left.moment.in_batch() && key(left) == key(right);
  };
  texts.erase(std::unique(texts.begin(), texts.end(), alike), texts.end());
  return texts;
}

std::vector<Table> Ledger::tables() const {
  std::vector<Table> out;
  out.reserve(tables_.size());
  for (const auto& [name, rows] : tables_) {
    Table& table = out.emplace_back(Table{.name = name, .columns = rows.columns});
    for (const auto& [index, cells] : rows.by_index) {
      table.rows.push_back({index, cells});
    }
  }
  return out;
}

}  // namespace muster
