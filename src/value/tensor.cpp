#include <muster/base/check.h>
#include <muster/value/tensor.h>

#include <cctype>

namespace muster {

std::string dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default: {
      // BFloat16, Bool, UInt16, Float8_e5m2 and the like differ from Python's names by letter case
      // alone.
      std::string name = c10::toString(dtype);
      for (char& letter : name) {
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      }
      return name;
    }
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "undefined";
  }
  const auto sizes = tensor.sizes();
  const std::string text =
      dtype_name(tensor.scalar_type()) + shape_text(std::span{sizes.data(), sizes.size()});
  return tensor.device().is_cpu() ? text : text + " on " + tensor.device().str();
}

at::Tensor dense_on_cpu(const at::Tensor& tensor) {
  check(tensor.layout() == at::kStrided && !tensor.is_quantized(),
        "expected a dense tensor, found one that is sparse or quantized; call to_dense() or "
        "dequantize() on it first");
  return tensor.detach().resolve_conj().resolve_neg().to(at::kCPU).contiguous();
}

}  // namespace muster
