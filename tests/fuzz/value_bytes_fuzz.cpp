// The wire form of values: bytes either are what to_bytes writes, to the last bit, or are refused.

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <muster/value/value.h>

#include "tests/fuzz/target.h"

namespace muster::fuzz {

void check_input(std::string_view input) {
  const auto value = unless_refused(ErrorKind::data, [&] { return from_bytes(input); });
  if (value) {
    require(to_bytes(*value) == input, "the bytes are not those of the value");
    require(identical(*value, from_bytes(input)), "a second time reads otherwise");
    require(!to_json(*value).empty(), "no JSON");
  }
}

std::vector<std::string> seeds() {
  std::vector<Value> values{{}, true, int64_t{-7}, 0.1, "text", at::Tensor{}};
  for (const auto type : {at::kBool, at::kByte, at::kHalf, at::kBFloat16, at::kFloat, at::kLong,
                          at::kComplexFloat, at::kFloat8_e4m3fn}) {
    values.emplace_back(at::zeros({2, 3}, type));
  }
  values.emplace_back(at::zeros({0, 5}));
  values.emplace_back(at::arange(4));
  values.emplace_back(Value::Dict{{"a", Value::List{1, 2.5, "x"}}, {"", Value::Dict{}}});
  std::vector<std::string> texts;
  texts.reserve(values.size() + 1);
  for (const auto& value : values) {
    texts.push_back(to_bytes(value));
  }
  texts.push_back(to_bytes(values));
  return texts;
}

}  // namespace muster::fuzz
