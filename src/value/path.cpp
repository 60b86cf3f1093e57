#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/base/redact.h>
#include <muster/base/text.h>
#include <muster/value/path.h>
#include <muster/value/tensor.h>

#include <algorithm>
#include <type_traits>

namespace muster {

namespace {

constexpr size_t max_shown = 80;

struct Describer {
  std::string operator()(std::monostate /*null*/) const { return "null"; }
  std::string operator()(bool flag) const { return flag ? "the bool true" : "the bool false"; }
  std::string operator()(int64_t number) const { return "the int " + std::to_string(number); }
  std::string operator()(double number) const { return "the float " + shortest(number); }
  std::string operator()(const std::string& text) const {
    const bool cut = text.size() > max_shown;
    const auto shown = valid_utf8(cut ? text.substr(0, max_shown) : text);
    return "the string \"" + shown + (cut ? "...\"" : "\"");
  }
  std::string operator()(const at::Tensor& tensor) const { return "a tensor " + describe(tensor); }
  std::string operator()(const Value::List& list) const {
    return "a list of " + std::to_string(list.size());
  }
  std::string operator()(const Value::Dict& /*dict*/) const { return "a dict"; }
};

}  // namespace

std::string ValuePath::text() const {
  if (parent_ == nullptr) {
    return std::string{name_};
  }
  const std::string above = parent_->text();
  if (name_.data() == nullptr) {
    return above + "[" + std::to_string(index_) + "]";
  }
  return above.empty() ? std::string{name_} : above + "." + std::string{name_};
}

void ValuePath::fail_expected(std::string_view expected, const Value& found) const {
  const std::string where = text();
  const auto name = where.substr(where.rfind('.') + 1);
  const bool secret = is_secret(name, found.is_string() ? found.as_string() : "any");
  fail(ErrorKind::usage, "{}{}expected {}, found {}", where, where.empty() ? "" : ": ", expected,
       secret ? format("the {} {}", found.kind(), redaction)
              : redact_urls(found.visit(Describer{})));
}

void ValuePath::check_keys(const Value::Dict& dict, std::span<const std::string_view> names) const {
  for (const auto& [key, value] : dict) {
    if (std::find(names.begin(), names.end(), key) != names.end()) {
      continue;
    }
    const std::vector<std::string> candidates{names.begin(), names.end()};
    const std::string closest = closest_name(key, candidates);
    const std::string full = ValuePath{*this, std::string_view{key}}.text();
    check(closest.empty(), "{}: unknown key; did you mean {}?", full,
          ValuePath{*this, std::string_view{closest}}.text());
    std::string all;
    for (const auto& name : candidates) {
      all += (all.empty() ? "" : ", ") + name;
    }
    fail(ErrorKind::usage, "{}: unknown key; known here: {}", full, all.empty() ? "none" : all);
  }
}

}  // namespace muster
