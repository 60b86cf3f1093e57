#include <muster/base/check.h>
#include <muster/base/redact.h>
#include <muster/value/redact.h>

#include <string>

namespace muster {

namespace {

/// A dict under such a name is a secret as a whole: any text would be one.
bool is_secret_whole(const std::string& name) { return is_secret(name, "any"); }

/// `within` a dict that is a secret as a whole.
Value redacted_under(const std::string& name, const Value& value, bool within) {
  if (value.is_string()) {
    const auto& text = value.as_string();
    const bool secret = !text.empty() && (within || is_secret(name, text));
    return secret ? std::string{redaction} : redact_urls(text);
  }
  if ((value.is_int() || value.is_double()) && (within || is_secret_whole(name))) {
    return std::string{redaction};
  }
  if (value.is_list()) {
    Value::List items;
    for (const auto& item : value.as_list()) {
      items.push_back(redacted_under(name, item, within));
    }
    return items;
  }
  if (value.is_dict()) {
    Value::Dict items;
    for (const auto& [key, item] : value.as_dict()) {
      items.emplace_back(key, redacted_under(key, item, within || is_secret_whole(name)));
    }
    return items;
  }
  return value;
}

}  // namespace

Value redacted(const Value& config) { return redacted_under("", config, false); }

void check_not_redacted(const Value& given, const ValuePath& path) {
  if (given.is_string()) {
    check(given.as_string().find(redaction) == std::string::npos,
          "{}: {} stands where a run's config.yaml leaves out what may be a secret; give the value "
          "itself, by --{} or in another --config",
          path.text(), redaction, path.text());
  } else if (given.is_list()) {
    for (size_t i = 0; i < given.as_list().size(); ++i) {
      check_not_redacted(given.as_list()[i], ValuePath{path, i});
    }
  } else if (given.is_dict()) {
    for (const auto& [key, item] : given.as_dict()) {
      check_not_redacted(item, ValuePath{path, std::string_view{key}});
    }
  }
}

}  // namespace muster
