#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Type.h>
#include <muster/base/check.h>
#include <muster/train/optimizer_state.h>
#include <muster/value/convert.h>
#include <muster/value/tensor.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <deque>
#include <memory>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

namespace muster {
namespace {

namespace optim = torch::optim;

/// The shape of a tensor in a state, and whether it may be undefined.
enum class Like { parameter, parameter_or_none, all_parameters_or_none, number_or_none };

struct Sgd {
  using Optimizer = optim::SGD;
  using Options = optim::SGDOptions;
  using State = optim::SGDParamState;
  static constexpr std::string_view name = "SGD";

  static void options(auto& o, auto&& member) {
    member("lr", o.lr());
    member("momentum", o.momentum());
    member("dampening", o.dampening());
    member("weight_decay", o.weight_decay());
    member("nesterov", o.nesterov());
  }
  static void state(auto& s, auto&& member) {
    member("momentum_buffer", s.momentum_buffer(), Like::parameter);
  }
};

/// Adam and AdamW have the same members.
struct AdamMembers {
  static void options(auto& o, auto&& member) {
    member("lr", o.lr());
    member("betas", o.betas());
    member("eps", o.eps());
    member("weight_decay", o.weight_decay());
    member("amsgrad", o.amsgrad());
  }
  static void state(auto& s, auto&& member) {
    member("step", s.step());
    member("exp_avg", s.exp_avg(), Like::parameter);
    member("exp_avg_sq", s.exp_avg_sq(), Like::parameter);
    member("max_exp_avg_sq", s.max_exp_avg_sq(), Like::parameter_or_none);
  }
};

struct Adam : AdamMembers {
  using Optimizer = optim::Adam;
  using Options = optim::AdamOptions;
  using State = optim::AdamParamState;
  static constexpr std::string_view name = "Adam";
};

struct AdamW : AdamMembers {
  using Optimizer = optim::AdamW;
  using Options = optim::AdamWOptions;
  using State = optim::AdamWParamState;
  static constexpr std::string_view name = "AdamW";
};

struct Adagrad {
  using Optimizer = optim::Adagrad;
  using Options = optim::AdagradOptions;
  using State = optim::AdagradParamState;
  static constexpr std::string_view name = "Adagrad";

  static void options(auto& o, auto&& member) {
    member("lr", o.lr());
    member("lr_decay", o.lr_decay());
    member("weight_decay", o.weight_decay());
    member("initial_accumulator_value", o.initial_accumulator_value());
    member("eps", o.eps());
  }
  static void state(auto& s, auto&& member) {
    member("step", s.step());
    member("sum", s.sum(), Like::parameter);
  }
};

struct RmsProp {
  using Optimizer = optim::RMSprop;
  using Options = optim::RMSpropOptions;
  using State = optim::RMSpropParamState;
  static constexpr std::string_view name = "RMSprop";

  static void options(auto& o, auto&& member) {
    member("lr", o.lr());
    member("alpha", o.alpha());
    member("eps", o.eps());
    member("weight_decay", o.weight_decay());
    member("momentum", o.momentum());
    member("centered", o.centered());
  }
  static void state(auto& s, auto&& member) {
    member("step", s.step());
    member("square_avg", s.square_avg(), Like::parameter);
    member("momentum_buffer", s.momentum_buffer(), Like::parameter_or_none);
    member("grad_avg", s.grad_avg(), Like::parameter_or_none);
  }
};

/// libtorch keeps LBFGS's one state, over all parameters in a row, under the first of them.
struct Lbfgs {
  using Optimizer = optim::LBFGS;
  using Options = optim::LBFGSOptions;
  using State = optim::LBFGSParamState;
  static constexpr std::string_view name = "LBFGS";

  static void options(auto& o, auto&& member) {
    member("lr", o.lr());
    member("max_iter", o.max_iter());
    member("max_eval", o.max_eval());
    member("tolerance_grad", o.tolerance_grad());
    member("tolerance_change", o.tolerance_change());
    member("history_size", o.history_size());
    member("line_search_fn", o.line_search_fn());
  }
  static void state(auto& s, auto&& member) {
    member("func_evals", s.func_evals());
    member("n_iter", s.n_iter());
    member("t", s.t());
    member("prev_loss", s.prev_loss());
    member("d", s.d(), Like::all_parameters_or_none);
    member("H_diag", s.H_diag(), Like::number_or_none);
    member("prev_flat_grad", s.prev_flat_grad(), Like::all_parameters_or_none);
    member("old_dirs", s.old_dirs(), Like::all_parameters_or_none);
    member("old_stps", s.old_stps(), Like::all_parameters_or_none);
    member("ro", s.ro(), Like::number_or_none);
    member("al", s.al(), Like::number_or_none);
  }
};

/// Calls `f` with the one of the structs above that is exactly the optimizer's type: a derived one
/// may hold more than is known here.
template <typename... Types, typename F>
void with_type_among(const optim::Optimizer& optimizer, const F& f) {
  const bool known =
      ((typeid(optimizer) == typeid(typename Types::Optimizer) && (f(Types{}), true)) || ...);
  check(known,
        "The state of an optimizer of type {} cannot be saved or loaded; use libtorch's SGD, Adam, "
        "AdamW, Adagrad, RMSprop or LBFGS, or train without checkpoints",
        c10::demangle(typeid(optimizer).name()));
}

template <typename F>
void with_type(const optim::Optimizer& optimizer, const F& f) {
  with_type_among<Sgd, Adam, AdamW, Adagrad, RmsProp, Lbfgs>(optimizer, f);
}

/// Writes members into a dict.
class Saver {
 public:
  Value take() { return std::move(dict_); }

  template <typename Number>
  void operator()(std::string_view name, const Number& number) {
    dict_.emplace_back(name, to_value(number));
  }
  template <typename Tensors>
  void operator()(std::string_view name, const Tensors& tensors, Like /*like*/) {
    dict_.emplace_back(name, saved(tensors));
  }

 private:
  static Value saved(const at::Tensor& tensor) {
    if (!tensor.defined()) return {};
    return tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();
  }
  static Value saved(const std::deque<at::Tensor>& tensors) { return list_of(tensors); }
  static Value saved(const std::optional<std::vector<at::Tensor>>& tensors) {
    return tensors ? list_of(*tensors) : Value{};
  }
  static Value list_of(const auto& tensors) {
    Value::List list;
    for (const at::Tensor& tensor : tensors) {
      list.push_back(saved(tensor));
    }
    return list;
  }

  Value::Dict dict_;
};

/// Reads members from a dict, with tensors like `parameter`, one of `parameters`.
class Loader {
 public:
  Loader(const Value& from, const ValuePath& path, at::Tensor parameter = {},
         const std::vector<at::Tensor>& parameters = {})
      : from_{from}, path_{path}, parameter_{std::move(parameter)} {
    if (!from.is_dict()) path.fail_expected("a dict", from);
    for (const auto& one : parameters) {
      elements_ += one.numel();
    }
  }
  ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  template <typename Number>
  void operator()(std::string_view name, Number& number) {
    ValueConverter<Number>::read(take(name), number, ValuePath{path_, name});
  }
  template <typename Tensors>
  void operator()(std::string_view name, Tensors& tensors, Like like) {
    load(tensors, like, take(name), ValuePath{path_, name});
  }
  /// To be called last.
  void check_nothing_left() const { path_.check_keys(from_.as_dict(), names_); }

 private:
  const Value& take(std::string_view name) {
    names_.push_back(name);
    const Value* found = from_.find(name);
    check(found != nullptr, ErrorKind::data, "{}: '{}' is missing", path_.text(), name);
    return *found;
  }

  void load(at::Tensor& tensor, Like like, const Value& value, const ValuePath& path) const {
    if (value.is_null() && like != Like::parameter) {
      tensor.reset();
      return;
    }
    if (!value.is_tensor() || !value.as_tensor().defined()) path.fail_expected("a tensor", value);
    const at::Tensor& found = value.as_tensor();
    if (like == Like::number_or_none) {
      check(found.dim() == 0, ErrorKind::data, "{}: expected one number, found {}", path.text(),
            describe(found));
      tensor = found.to(parameter_.device(), /*non_blocking=*/false, /*copy=*/true);
      return;
    }
    const bool all = like == Like::all_parameters_or_none;
    tensor = all ? at::empty({elements_}, parameter_.options()) : at::empty_like(parameter_);
    const auto from = found.scalar_type();
    const auto to = tensor.scalar_type();
    const bool same_type = from == to || (at::isFloatingType(from) && at::isFloatingType(to));
    check(found.sizes() == tensor.sizes() && same_type, ErrorKind::data,
          "{}: expected {} as the optimizer's {}, found {}", path.text(), describe(tensor),
          all ? "parameters have numbers" : "parameter is", describe(found));
    tensor.copy_(found);
  }

  void load(std::deque<at::Tensor>& tensors, Like like, const Value& value,
            const ValuePath& path) const {
    load_list(tensors, like, value, path);
  }
  void load(std::optional<std::vector<at::Tensor>>& tensors, Like like, const Value& value,
            const ValuePath& path) const {
    tensors.reset();
    if (!value.is_null()) load_list(tensors.emplace(), like, value, path);
  }
  void load_list(auto& tensors, Like like, const Value& value, const ValuePath& path) const {
    const auto& list = detail::read_list(value, path);
    for (size_t i = 0; i < list.size(); ++i) {
      load(tensors.emplace_back(), like, list[i], ValuePath{path, i});
    }
  }

  const Value& from_;
  const ValuePath& path_;
  at::Tensor parameter_;
  int64_t elements_ = 0;
  std::vector<std::string_view> names_;
};

template <typename Type>
Value group_state(const optim::Optimizer& optimizer, const optim::OptimizerParamGroup& group) {
  Saver options;
  Type::options(static_cast<const typename Type::Options&>(group.options()), options);
  Value::List parameters;
  for (const auto& parameter : group.params()) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    Saver state;
    if (found != optimizer.state().end()) {
      Type::state(static_cast<const typename Type::State&>(*found->second), state);
    }
    parameters.push_back(found == optimizer.state().end() ? Value{} : state.take());
  }
  return Value::Dict{{"options", options.take()}, {"parameters", std::move(parameters)}};
}

/// What a state comes to, before the optimizer is touched.
template <typename Type>
struct Loaded {
  std::vector<typename Type::Options> options;
  ska::flat_hash_map<void*, std::unique_ptr<optim::OptimizerParamState>> states;

  void group(const optim::OptimizerParamGroup& group, const Value& from, const ValuePath& path) {
    const Value* saved_options = from.find("options");
    const Value* saved = from.find("parameters");
    if (saved_options == nullptr || saved == nullptr || !saved->is_list()) {
      path.fail_expected("a dict of options and parameters", from);
    }
    const ValuePath options_path{path, "options"};
    Loader loader{*saved_options, options_path};
    Type::options(options.emplace_back(static_cast<const typename Type::Options&>(group.options())),
                  loader);
    loader.check_nothing_left();

    const ValuePath parameters_path{path, "parameters"};
    const auto& parameters = group.params();
    check(saved->as_list().size() == parameters.size(), ErrorKind::data,
          "{}: the optimizer's group has {} parameters, the saved one {}", parameters_path.text(),
          parameters.size(), saved->as_list().size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value& one = saved->as_list()[i];
      if (one.is_null()) continue;
      const ValuePath place{parameters_path, i};
      auto state = std::make_unique<typename Type::State>();
      Loader members{one, place, parameters[i], parameters};
      Type::state(*state, members);
      members.check_nothing_left();
      states[parameters[i].unsafeGetTensorImpl()] = std::move(state);
    }
  }
};

template <typename Type>
Loaded<Type> read(const optim::Optimizer& optimizer, const Value& state) {
  const ValuePath root{"optimizer"};
  const Value* type = state.find("type");
  const Value* saved = state.find("groups");
  if (type == nullptr || saved == nullptr || !type->is_string() || !saved->is_list()) {
    root.fail_expected("a dict of type and groups", state);
  }
  check(type->as_string() == Type::name, ErrorKind::data,
        "optimizer.type: this optimizer is {}, the saved one {}", Type::name, type->as_string());
  const auto& groups = optimizer.param_groups();
  const auto& saved_groups = saved->as_list();
  check(saved_groups.size() == groups.size(), ErrorKind::data,
        "optimizer.groups: this optimizer has {} groups of parameters, the saved one {}",
        groups.size(), saved_groups.size());
  const ValuePath path{root, "groups"};
  Loaded<Type> loaded;
  for (size_t i = 0; i < groups.size(); ++i) {
    loaded.group(groups[i], saved_groups[i], ValuePath{path, i});
  }
  return loaded;
}

}  // namespace

Value optimizer_state(const optim::Optimizer& optimizer) {
  Value state;
  with_type(optimizer, [&]<typename Type>(Type /*type*/) {
    Value::List groups;
    for (const auto& group : optimizer.param_groups()) {
      groups.push_back(group_state<Type>(optimizer, group));
    }
    state = Value::Dict{{"type", std::string{Type::name}}, {"groups", std::move(groups)}};
  });
  return state;
}

void load_optimizer_state(optim::Optimizer& optimizer, const Value& state) {
  with_type(optimizer, [&]<typename Type>(Type /*type*/) {
    Loaded<Type> loaded;
    try {
      loaded = read<Type>(optimizer, state);
    } catch (const Error& error) {
      fail(ErrorKind::data, "{}", error.what());  // conversions take a Value for a configuration
    }
    optimizer.state() = std::move(loaded.states);
    for (size_t i = 0; i < loaded.options.size(); ++i) {
      auto& group = optimizer.param_groups()[i];
      static_cast<typename Type::Options&>(group.options()) = loaded.options[i];
    }
  });
}

}  // namespace muster
