// copy_tensors IN OUT [CHECKPOINT]: a safetensors file through everything that reads, loads and
// writes one.
#include <ATen/ops/zeros.h>
#include <muster/base/error.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/io/value_file.h>
#include <muster/io/weights.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
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
    if (argc == 4) {
      const muster::Value state = muster::Value::Dict{
          {"groups", muster::Value::List{muster::Value::Dict{
                         {"lr", 0.1}, {"exp_avg", at::zeros({2, 3})}, {"a.b", "<\xc3\xbc>"}}}},
          {"", muster::Value{}}};
      muster::write_checkpoint(argv[3], {.global_step = 12,
                                         .epoch = 3,
                                         .model = model,
                                         .files = {{"state", muster::value_file_bytes(state)}}});
    }
  } catch (const muster::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
