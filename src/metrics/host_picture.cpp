#include "src/metrics/host_picture_internal.h"

#include <muster/base/check.h>
#include <muster/value/tensor.h>

#include <type_traits>

namespace muster {

namespace {

at::Tensor copy(const at::Tensor& tensor, at::ScalarType dtype, std::string_view what) {
  const auto sizes = tensor.sizes();
  const size_t leading = sizes.size() < 2 ? 0 : sizes.size() - 2;
  bool is_picture = sizes.size() >= 2 && sizes.size() <= 4;
  for (size_t i = 0; i < leading; ++i) {
    is_picture = is_picture && sizes[i] == 1;
  }
  check(is_picture, "{} must be [H, W], [1, H, W] or [1, 1, H, W], not {}", what, describe(tensor));
  return tensor.detach()
      .to(at::TensorOptions().device(at::kCPU).dtype(dtype), /*non_blocking=*/false, /*copy=*/true,
          at::MemoryFormat::Contiguous)
      .view({sizes[leading], sizes[leading + 1]});
}

template <typename T>
Picture<T> view_of(const T* data, const at::Tensor& host) {
  return {data, host.size(1), host.size(0), host.size(1)};
}

template <typename T, typename From>
void scale(const at::Tensor& host, AlphaRange range, std::string_view what,
           std::vector<T>& memory) {
  const From* values = host.const_data_ptr<From>();
  const double full = range == AlphaRange::byte ? 255.0 : 1.0;
  memory.resize(static_cast<size_t>(host.numel()));
  for (int64_t i = 0; i < host.numel(); ++i) {
    const auto value = static_cast<double>(values[i]);
    if (!(value >= 0.0 && value <= full)) [[unlikely]] {
      fail(ErrorKind::data,
           "{} has the value {} at row {}, column {}; its declared range is 0 to {}", what, value,
           i / host.size(1), i % host.size(1), full);
    }
    memory[static_cast<size_t>(i)] = static_cast<T>(value / full);
  }
}

template <typename From>
void code_trimap(const at::Tensor& host, TrimapCoding coding, std::vector<uint8_t>& memory) {
  const From* values = host.const_data_ptr<From>();
  const bool classes = coding == TrimapCoding::classes;
  const From unknown = classes ? 1 : 128;
  const From foreground = classes ? 2 : 255;
  memory.resize(static_cast<size_t>(host.numel()));
  for (int64_t i = 0; i < host.numel(); ++i) {
    const From value = values[i];
    if (value != From{0} && value != unknown && value != foreground) [[unlikely]] {
      fail(ErrorKind::data,
           "the trimap has the value {} at row {}, column {}; its declared values are 0, {} and {}",
           static_cast<double>(value), i / host.size(1), i % host.size(1),
           static_cast<double>(unknown), static_cast<double>(foreground));
    }
    memory[static_cast<size_t>(i)] = value == From{0} ? 0 : value == unknown ? 128 : 255;
  }
}

}  // namespace

at::Tensor copy_alpha(const at::Tensor& tensor, std::string_view what) {
  check(tensor.defined(), "{} is an undefined tensor", what);
  const auto dtype = tensor.scalar_type();
  check(dtype == at::kByte || at::isFloatingType(dtype), "{} must be uint8 or floating, not {}",
        what, describe(tensor));
  return copy(tensor, dtype == at::kByte || dtype == at::kDouble ? dtype : at::kFloat, what);
}

at::Tensor copy_trimap(const at::Tensor& tensor, std::string_view what) {
  const auto dtype = tensor.scalar_type();
  check(at::isIntegralType(dtype, /*includeBool=*/false) || at::isFloatingType(dtype),
        "{} must be of integers or floating, not {}", what, describe(tensor));
  return copy(tensor, dtype == at::kByte ? dtype : at::kFloat, what);
}

template <typename T>
Picture<T> alpha_picture(const at::Tensor& host, AlphaRange range, std::string_view what,
                         std::vector<T>& memory) {
  const auto dtype = host.scalar_type();
  const bool fits = std::is_integral_v<T> || range == AlphaRange::unit;
  if (fits && dtype == c10::CppTypeToScalarType<T>::value) {
    return view_of(host.const_data_ptr<T>(), host);
  }
  if (dtype == at::kByte) {
    scale<T, uint8_t>(host, range, what, memory);
  } else if (dtype == at::kFloat) {
    scale<T, float>(host, range, what, memory);
  } else {
    scale<T, double>(host, range, what, memory);
  }
  return view_of(memory.data(), host);
}

Picture8 trimap_picture(const at::Tensor& host, TrimapCoding coding, std::vector<uint8_t>& memory) {
  if (host.scalar_type() == at::kByte) {
    code_trimap<uint8_t>(host, coding, memory);
  } else {
    code_trimap<float>(host, coding, memory);
  }
  return view_of(memory.data(), host);
}

template Picture8 alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                std::vector<uint8_t>&);
template PictureF alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                std::vector<float>&);
template PictureD alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                std::vector<double>&);

}  // namespace muster
