// A program on libtorch alone that takes one step of the work of examples/minimal.

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

int main() {
  at::set_num_threads(1);
  torch::nn::Sequential net{torch::nn::Linear{64, 64}, torch::nn::ReLU{},
                            torch::nn::Linear{64, 10}};
  torch::optim::SGD optimizer{net->parameters(), 0.1};
  net->forward(at::randn({8, 64})).square().mean().backward();
  optimizer.step();
  return 0;
}
