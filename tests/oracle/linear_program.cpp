// A program with a small Linear that logs its outputs, so that a test can see which weights it has,
// and what a program of a user's own does with a wrong option or a misused collective.

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace {

struct Row {
  at::Tensor x;
};

enum class Gather { none, all, rank_zero };
constexpr auto enum_names(Gather /*unused*/) {
  return std::array{std::pair{"none", Gather::none}, std::pair{"all", Gather::all},
                    std::pair{"rank_zero", Gather::rank_zero}};
}

struct ModelOptions {
  Gather gather = Gather::none;  // who gathers in a batch hook
  bool fail = false;             // whether the last batch throws
};
struct DataOptions {
  int64_t rows = 3;  // samples
};

class Linear : public muster::Module<Row> {
 public:
  explicit Linear(const ModelOptions& options) : options_{options} {
    weight_ = register_parameter("weight", at::ones({2, 3}));
    bias_ = register_parameter("bias", at::zeros({2}));
    scale_ = register_buffer("scale", at::ones({1}));
  }

  void validation_step(const Batch& batch, muster::Step& step) override {
    const auto y = at::linear(batch.stack(&Row::x), weight_, bias_) * scale_;
    step.log("y0", y.select(1, 0));
    step.log("y1", y.select(1, 1));
    if (options_.gather == Gather::all ||
        (options_.gather == Gather::rank_zero && step.is_global_zero())) {
      step.all_gather(y);
    }
    if (options_.fail && batch.indices().back() == 2) {
      throw std::runtime_error{"the model does not like row 2"};
    }
  }

 private:
  ModelOptions options_;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor scale_;
};

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    Linear linear{model};
    std::vector<Row> rows;
    for (int64_t i = 0; i < data.rows; ++i) {
      rows.push_back({at::ones({3}) * static_cast<double>(i)});
    }
    const muster::Loader<Row> loader{rows};
    cli.run(linear, muster::DataModule<Row>{.val_dataloader = loader});
  });
}
