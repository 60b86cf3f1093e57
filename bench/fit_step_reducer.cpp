#include "fit_step_work.h"

#include <muster/comm/c10d.h>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <numeric>
#include <optional>
#include <tuple>

namespace bench {

namespace {

/// Sizes of buckets in bytes, as Python's DDP has them.
constexpr int64_t first_bucket = int64_t{1} << 20U;
constexpr int64_t bucket = int64_t{25} << 20U;

std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                            const muster::Group& group, const char* name) {
  const std::vector<bool> sparse(parameters.size(), false);
  std::vector<at::Tensor> arriving(parameters.rbegin(), parameters.rend());
  std::vector<int64_t> indices(parameters.size());
  std::iota(indices.rbegin(), indices.rend(), 0);
  auto buckets = std::get<0>(
      c10d::compute_bucket_assignment_by_size(arriving, {first_bucket, bucket}, sparse, indices));
  return std::make_shared<c10d::Reducer>(
      parameters, std::move(buckets), muster::make_process_group(group, name), sparse, bucket,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
      std::unordered_map<size_t, std::string>{}, first_bucket,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>{});
}

class BareReducer final : public BareLoop {
 public:
  BareReducer(const muster::Loader<Sample>& loader, const muster::Group& group, const char* name)
      : loader_{loader},
        rank_{group.rank()},
        ranks_{group.size()},
        reducer_{make_reducer(net_->parameters(), group, name)} {}

  void open(int64_t epoch) override {
    epoch_.emplace(loader_.batches(epoch, {.rank = rank_, .world_size = ranks_}));
  }

  void step() override {
    const auto batch = epoch_->next();
    reducer_->rebuild_buckets();  // does so once, and is what Python's DDP calls in every step
    reducer_->prepare_for_forward();
    const at::Tensor loss = net_->forward(batch->stack(&Sample::x)).square().mean();
    reducer_->prepare_for_backward({});
    loss.backward();
    optimizer_.step();
    optimizer_.zero_grad();
    if (++steps_ % log_every_n_steps == 0) {
      logged_ = loss.item<double>();
    }
  }

 private:
  const muster::Loader<Sample>& loader_;
  int rank_;
  int ranks_;
  torch::nn::Sequential net_{torch::nn::Linear{64, 64}, torch::nn::ReLU{},
                             torch::nn::Linear{64, 10}};
  torch::optim::SGD optimizer_{net_->parameters(), 0.1};
  std::shared_ptr<c10d::Reducer> reducer_;
  std::optional<muster::Epoch<Sample>> epoch_{};
  int64_t steps_ = 0;
  double logged_ = 0.0;
};

}  // namespace

std::unique_ptr<BareLoop> make_reducer_loop(const muster::Loader<Sample>& loader,
                                            const muster::Group& group, const char* name) {
  return std::make_unique<BareReducer>(loader, group, name);
}

}  // namespace bench
