#include "invocation_internal.h"
#include "yaml_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/text.h>
#include <muster/value/redact.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

namespace {

constexpr std::array commands{"fit", "validate", "test", "predict"};
constexpr std::array sections{"trainer", "model", "data"};
constexpr std::array short_forms{"devices", "run_dir", "seed", "threads"};
constexpr std::array program_options{"config", "ckpt_path", "print_config", "help"};

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void fail_unknown(std::string_view option) {
  std::vector<std::string> known(short_forms.begin(), short_forms.end());
  known.insert(known.end(), program_options.begin(), program_options.end());
  for (const auto name : field_names<TrainerOptions>()) {
    known.push_back("trainer." + std::string{name});
  }
  std::string nearest = closest_name(option, known);
  if (nearest.empty()) {
    // A wrong section with a right key, such as trainr.devices.
    const auto dot = option.find('.');
    std::vector<std::string> names(sections.begin(), sections.end());
    const std::string section = closest_name(option.substr(0, dot), names);
    if (!section.empty() && dot != std::string_view::npos) {
      nearest = section + std::string{option.substr(dot)};
    }
  }
  check(!nearest.empty(),
        "unknown option --{}; options are --trainer.KEY, --model.KEY, --data.KEY, and those of "
        "--help",
        option);
  fail(ErrorKind::usage, "unknown option --{}; did you mean --{}?", option, nearest);
}

/// Puts `value` at a dotted path of the tree.
void assign(Value& tree, std::string_view path, Value value) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) {
    tree[path] = std::move(value);
    return;
  }
  Value& inner = tree[path.substr(0, dot)];
  if (!inner.is_dict()) {
    inner = Value::Dict{};
  }
  assign(inner, path.substr(dot + 1), std::move(value));
}

/// Lays `over` on `base`: dicts key by key, everything else replaced.
void merge(Value& base, const Value& over) {
  if (!base.is_dict() || !over.is_dict()) {
    base = over;
    return;
  }
  for (const auto& [key, value] : over.as_dict()) {
    merge(base[key], value);
  }
}

/// See section_of; `path` is where `value` stands.
void keep_texts(Value& value, const Value& defaults, const Invocation& invocation,
                const std::string& path) {
  if (defaults.is_string()) {
    const auto text = invocation.texts.find(path);
    if (text != invocation.texts.end() && !value.is_string()) {
      value = text->second;
    }
  } else if (defaults.is_dict() && value.is_dict()) {
    for (auto& [key, item] : value.as_dict()) {
      if (const Value* inner = defaults.find(key)) {
        keep_texts(item, *inner, invocation, format("{}.{}", path, key));
      }
    }
  }
}

class Parser {
 public:
  Parser(const std::string& program, const std::vector<std::string>& arguments)
      : arguments_{arguments} {
    result_.program = program;
  }

  Invocation parse() {
    for (at_ = 0; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (argument == "-h") {
        result_.help = true;
      } else if (argument.starts_with("--")) {
        option(argument.substr(2));
      } else {
        take_command(argument);
      }
    }
    check(!result_.command.empty() || result_.help, "a command is missing; {}",
          usage_text(result_.program));
    Value config = Value::Dict{};
    for (const auto& file : config_files_) {
      merge(config, read_config(file));
    }
    merge(config, given_);
    if (const Value* path = config.find("ckpt_path"); path != nullptr && !path->is_null()) {
      check(path->is_string() && !path->as_string().empty(),
            "ckpt_path: expected a path, best or last, found the {} {}", path->kind(),
            to_json(*path));
      result_.ckpt_path = path->as_string();
    }
    result_.config = std::move(config);
    return std::move(result_);
  }

 private:
  void take_command(const std::string& argument) {
    if (!among(commands, argument)) {
      const std::vector<std::string> names(commands.begin(), commands.end());
      const std::string nearest = closest_name(argument, names);
      fail(ErrorKind::usage, "unknown command {}; {}", argument,
           nearest.empty() ? "commands are fit, validate, test and predict"
                           : "did you mean " + nearest + "?");
    }
    check(result_.command.empty(), "two commands, {} and {}; run them one after the other",
          result_.command, argument);
    result_.command = argument;
  }

  void option(std::string name) {
    std::optional<std::string> attached;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      attached = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name == "help" || name == "print_config") {
      (name == "help" ? result_.help : result_.print_config) = true;
      return;
    }
    const auto dot = name.find('.');
    const bool dotted = dot != std::string::npos && dot + 1 < name.size();
    if (!(dotted && among(sections, name.substr(0, dot))) && !among(short_forms, name) &&
        !among(program_options, name)) {
      fail_unknown(name);
    }
    const std::string text = attached ? *attached : next_argument(name);
    if (name == "config") {
      config_files_.push_back(text);
    } else if (name == "ckpt_path") {
      given_["ckpt_path"] = text;
    } else {
      const std::string path = dotted ? name : "trainer." + name;
      assign(given_, path, parse_scalar(text));
      result_.texts[path] = text;
    }
  }

  const std::string& next_argument(const std::string& name) {
    check(at_ + 1 < arguments_.size() && !arguments_[at_ + 1].starts_with("--"),
          "--{} needs a value after it (--{}=VALUE where the value begins with --)", name, name);
    return arguments_[++at_];
  }

  static Value read_config(const std::string& file) {
    constexpr uint64_t most = uint64_t{16} << 20U;  // parse_yaml refuses less; a device has no end
    const auto text = read_input_if_there(file, most);
    check(text.has_value(), "--config {}: there is no such file", file);
    Value config = parse_yaml(*text, file);
    if (config.is_null()) {
      config = Value::Dict{};
    }
    check(config.is_dict(), "{}: expected sections (trainer, model, data), found a {}", file,
          config.kind());
    for (const auto& [key, value] : config.as_dict()) {
      check(!among(sections, key) || value.is_dict() || value.is_null(),
            "{}: {}: expected keys and values, found the {} {}", file, key, value.kind(),
            to_json(value));
      if (!among(sections, key) && key != "ckpt_path") {
        const std::vector<std::string> known{"trainer", "model", "data", "ckpt_path"};
        const std::string nearest = closest_name(key, known);
        fail(ErrorKind::usage, "{}: unknown key {}; {}", file, key,
             nearest.empty() ? "known are trainer, model, data and ckpt_path"
                             : "did you mean " + nearest + "?");
      }
    }
    return config;
  }

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  Invocation result_;
  std::vector<std::string> config_files_;
  Value given_ = Value::Dict{};
};

}  // namespace

Invocation parse_arguments(const std::string& program, const std::vector<std::string>& arguments) {
  return Parser{program, arguments}.parse();
}

Value section_of(const Invocation& invocation, const std::string& name, const Value& defaults) {
  const Value* found = invocation.config.find(name);
  Value section = found == nullptr || found->is_null() ? Value{Value::Dict{}} : *found;
  keep_texts(section, defaults, invocation, name);
  check_not_redacted(section, ValuePath{name});
  return section;
}

TrainerOptions trainer_options(const Invocation& invocation) {
  TrainerOptions options = invocation.trainer_defaults;
  const Value given = section_of(invocation, "trainer", to_value(options));
  const Value* steps = given.find("max_steps");
  if (steps != nullptr && steps->is_int() && steps->as_int() >= 0) {
    options.max_epochs.reset();  // a program's default does not bound the steps that are asked for
  }
  update_from_value(options, given, "trainer");
  check_options(options);
  if (options.run_dir.empty()) {
    options.run_dir = "runs/" + invocation.program;
  }
  return options;
}

std::string usage_text(const std::string& program) {
  return "usage: " + program +
         " fit|validate|test|predict [--config FILE.yaml] [--ckpt_path PATH|best|last] "
         "[--print_config] [--help]\n"
         "       [--trainer.KEY VALUE ...] [--model.KEY VALUE ...] [--data.KEY VALUE ...]\n"
         "       [--devices N] [--run_dir DIR] [--seed N] [--threads N|auto]";
}

}  // namespace muster
