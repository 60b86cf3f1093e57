#include "fit_step_work.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <optional>

namespace bench {

namespace {

class Bare final : public BareLoop {
 public:
  explicit Bare(const muster::Loader<Sample>& loader) : loader_{loader} {}

  void open(int64_t epoch) override { epoch_.emplace(loader_.batches(epoch)); }

  void step() override {
    const auto batch = epoch_->next();
    const at::Tensor loss = net_->forward(batch->stack(&Sample::x)).square().mean();
    loss.backward();
    optimizer_.step();
    optimizer_.zero_grad();
    if (++steps_ % log_every_n_steps == 0) {
      logged_ = loss.item<double>();
    }
  }

 private:
  const muster::Loader<Sample>& loader_;
  torch::nn::Sequential net_{torch::nn::Linear{64, 64}, torch::nn::ReLU{},
                             torch::nn::Linear{64, 10}};
  torch::optim::SGD optimizer_{net_->parameters(), 0.1};
  std::optional<muster::Epoch<Sample>> epoch_{};
  int64_t steps_ = 0;
  double logged_ = 0.0;
};

}  // namespace

std::unique_ptr<BareLoop> make_bare_loop(const muster::Loader<Sample>& loader) {
  return std::make_unique<Bare>(loader);
}

}  // namespace bench
