#pragma once

#include <ATen/core/Tensor.h>
#include <muster/value/fields.h>
#include <muster/value/value.h>

#include <tuple>
#include <type_traits>
#include <utility>

namespace muster {

/// Replaces each tensor in `object` by `f(tensor)`: in the fields of structs, in containers,
/// optionals, pairs, tuples and Values, at any depth. Types without fields (muster/value/fields.h)
/// are left alone.
template <typename T, typename F>
void replace_tensors(T& object, const F& f) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    object = f(object);
  } else if constexpr (std::is_same_v<T, Value>) {
    if (object.is_tensor()) {
      object = f(object.as_tensor());
    } else if (object.is_list()) {
      replace_tensors(object.as_list(), f);
    } else if (object.is_dict()) {
      replace_tensors(object.as_dict(), f);
    }
  } else if constexpr (requires { typename T::mapped_type; }) {
    for (auto& [key, item] : object) {
      replace_tensors(item, f);
    }
  } else if constexpr (requires {
                         object.begin();
                         typename T::value_type;
                       }) {
    if constexpr (std::is_class_v<typename T::value_type>) {
      for (auto& item : object) {
        replace_tensors(item, f);
      }
    }
  } else if constexpr (requires { object.has_value(), *object; }) {
    if (object.has_value()) {
      replace_tensors(*object, f);
    }
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&f](auto&... items) { (replace_tensors(items, f), ...); }, object);
  } else if constexpr (HasFields<T>) {
    for_each_field(object, [&f](std::string_view /*name*/, auto& member) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(member)>>) {
        replace_tensors(member, f);
      }
    });
  }
}

/// The tensor in memory whose address is a multiple of 64, without gaps and without gradient:
/// itself where it is that already, else a copy that torch allocates. A model's bits depend on the
/// alignment of what it reads, and the address of foreign memory differs from run to run. Tensors
/// on other devices stay as they are.
at::Tensor in_aligned_memory(const at::Tensor& tensor);

/// The tensor on `device`; an undefined one stays undefined.
at::Tensor on_device(const at::Tensor& tensor, at::Device device);

/// A floating tensor in the type `dtype`; any other, and an undefined one, stays as it is.
at::Tensor in_dtype(const at::Tensor& tensor, at::ScalarType dtype);

}  // namespace muster
