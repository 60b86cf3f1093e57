#include <ATen/autocast_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <muster/base/check.h>
#include <muster/train/precision.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace muster {
namespace {

/// Lightning's short form of a name.
std::string_view short_form(std::string_view name) { return name.substr(0, name.find('-')); }

/// Gradients that one call can take.
struct Alike {
  at::Device device;
  at::ScalarType type;
  std::vector<at::Tensor> gradients;
};

std::vector<Alike> gradients_of(std::span<const at::Tensor> parameters) {
  std::vector<Alike> groups;
  for (const auto& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    check(gradient.scalar_type() != at::kHalf,
          "a gradient is float16; 16-mixed is for parameters of float32, which autocast converts");
    const auto numbers = gradient.is_sparse() ? gradient._values() : gradient;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
      return group.device == numbers.device() && group.type == numbers.scalar_type();
    });
    if (found == groups.end()) {
      found = groups.insert(found, {numbers.device(), numbers.scalar_type(), {}});
    }
    found->gradients.push_back(numbers);
  }
  return groups;
}

}  // namespace

Value ValueConverter<Precision>::write(Precision precision) {
  for (const auto& [name, known] : enum_names(precision)) {
    if (known == precision) return name;
  }
  detail::fail_unnamed_enum(static_cast<int64_t>(precision));
}

void ValueConverter<Precision>::read(const Value& value, Precision& target, const ValuePath& path) {
  const auto text = value.is_int() ? Value{std::to_string(value.as_int())} : value;
  std::vector<std::string> names;
  for (const auto& [name, known] : enum_names(Precision{})) {
    if (text.is_string() && text.as_string() == short_form(name)) {
      target = known;
      return;
    }
    names.emplace_back(name);
  }
  target = enum_names(Precision{})[detail::read_name(value, names, path)].second;
}

void AutocastGuard::enter(Precision precision, at::DeviceType device) {
  check(device == at::kCPU || device == at::kCUDA,
        "precision {} is for the CPU and CUDA, not for {}",
        ValueConverter<Precision>::write(precision).as_string(),
        at::DeviceTypeName(device, /*lower_case=*/true));
  before_ =
      Before{device, at::autocast::is_autocast_enabled(device),
             at::autocast::get_autocast_dtype(device), at::autocast::is_autocast_cache_enabled()};
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device,
                                   precision == Precision::bf16_mixed ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::increment_nesting();
}

void AutocastGuard::leave() noexcept {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(before_->device, before_->enabled);
  at::autocast::set_autocast_dtype(before_->device, before_->dtype);
  at::autocast::set_autocast_cache_enabled(before_->cache_enabled);
}

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_{options}, factor_{static_cast<float>(options.init_scale)} {
  check(std::isfinite(factor_) && factor_ > 0.0F,
        "GradScaler: init_scale must be above 0 and fit float32, found {}", options.init_scale);
  check(options.growth_factor > 1.0, "GradScaler: growth_factor must be above 1, found {}",
        options.growth_factor);
  check(options.backoff_factor > 0.0 && options.backoff_factor < 1.0,
        "GradScaler: backoff_factor must be in (0, 1), found {}", options.backoff_factor);
  check(options.growth_interval >= 1, "GradScaler: growth_interval must be at least 1, found {}",
        options.growth_interval);
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  // A tensor, so that a loss of float16 becomes float32 instead of infinite.
  return loss.mul(at::full({}, factor_, loss.options().dtype(at::kFloat)));
}

bool GradScaler::unscale(std::span<const at::Tensor> parameters) const {
  const c10::AutoGradMode without_gradients{false};
  const double inverse = 1.0 / static_cast<double>(factor_);
  bool found_inf = false;
  for (const auto& [device, type, gradients] : gradients_of(parameters)) {
    const auto options = at::TensorOptions{}.dtype(at::kFloat).device(device);
    at::Tensor found = at::zeros({}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found,
                                                   at::full({}, inverse, options));
    found_inf = found.item<float>() != 0.0F || found_inf;
  }
  return found_inf;
}

void GradScaler::update(bool found_inf) {
  if (found_inf) {
    factor_ = static_cast<float>(factor_ * options_.backoff_factor);
    good_steps_ = 0;
  } else if (++good_steps_ >= options_.growth_interval) {
    const auto grown = static_cast<float>(factor_ * options_.growth_factor);
    factor_ = std::isfinite(grown) ? grown : factor_;
    good_steps_ = 0;
  }
}

Value GradScaler::state() const {
  return Value::Dict{{"scale", static_cast<double>(factor_)}, {"growth_tracker", good_steps_}};
}

void GradScaler::load_state(const Value& state) {
  const Value* scale = state.find("scale");
  const Value* tracker = state.find("growth_tracker");
  check(scale != nullptr && scale->is_double() && std::isfinite(scale->as_double()) &&
            scale->as_double() >= 0.0 && tracker != nullptr && tracker->is_int() &&
            tracker->as_int() >= 0,
        ErrorKind::data,
        "the state of a GradScaler is a dict of scale and growth_tracker, found {}",
        to_json(state));
  factor_ = static_cast<float>(scale->as_double());
  good_steps_ = tracker->as_int();
}

}  // namespace muster
