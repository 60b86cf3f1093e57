#include "summary_table_internal.h"
#include "type_name_internal.h"

#include <muster/base/check.h>
#include <muster/train/model_summary.h>

#include <torch/nn/module.h>

#include <typeinfo>

namespace muster {

namespace {

/// Python's name of a class of libtorch, which ends in Impl there.
std::string type_of(const torch::nn::Module& module) {
  std::string name = short_type_name(typeid(module));
  if (name.size() > 4 && name.ends_with("Impl")) {
    name.resize(name.size() - 4);
  }
  return name;
}

SummaryPart part_of(const std::string& name, const torch::nn::Module& module) {
  SummaryPart part{.name = name,
                   .type = type_of(module),
                   .training = module.is_training(),
                   .parameters = module.parameters(/*recurse=*/false)};
  for (const auto& child : module.named_children()) {
    part.parts.push_back(part_of(child.key(), *child.value()));
  }
  return part;
}

}  // namespace

std::string summarize(const torch::nn::Module& module, const ModelSummaryOptions& options) {
  check(options.max_depth >= -1, "max_depth: expected -1 for all, or at least 0, found {}",
        options.max_depth);
  return summary_table(part_of("", module), options.max_depth);
}

ModelSummary::ModelSummary(const ModelSummaryOptions& options, std::FILE* out)
    : options_{options}, out_{out} {}

void ModelSummary::on_start(const Progress& progress) {
  if (progress.stage != Stage::fit) {
    return;
  }
  const std::string text = summarize(progress.training->module(), options_);
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

}  // namespace muster
