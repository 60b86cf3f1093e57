#pragma once

#include <muster/train/callback.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace muster {

struct ModelSummaryOptions {
  /// Down to which level of nesting modules are listed; -1: all of them, 0: totals alone.
  int64_t max_depth = 1;
};

/// A table of the module's parts: name, type, parameters of the part and all below it, mode; then
/// the numbers of all parameters and their size in MB (10^6 bytes). A parameter that the module has
/// twice counts once. Lines end with a newline.
std::string summarize(const torch::nn::Module& module, const ModelSummaryOptions& options = {});

/// Writes that table on `out` before a training. For rank 0; the Trainer adds it there unless
/// `enable_model_summary` is off.
class ModelSummary final : public Callback {
 public:
  /// `out` must outlive it.
  explicit ModelSummary(const ModelSummaryOptions& options = {}, std::FILE* out = stderr);

  void on_start(const Progress& progress) override;

 private:
  ModelSummaryOptions options_;
  std::FILE* out_;
};

}  // namespace muster
