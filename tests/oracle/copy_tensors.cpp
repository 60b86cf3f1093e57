// copy_tensors IN OUT: a safetensors file through everything that reads, loads and writes one.
#include <ATen/ops/zeros.h>
#include <muster/base/error.h>
#include <muster/io/weights.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  try {
    const auto file = muster::load_safetensors(argv[1]);
    muster::NamedTensors model;
    for (const auto& [name, tensor] : file.tensors) {
      model.emplace_back(name, at::zeros(tensor.sizes(), tensor.options()));
    }
    muster::load_weights(argv[1], model);
    muster::save_safetensors(argv[2], model, file.metadata);
  } catch (const muster::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
