#pragma once

#include <muster/comm/group.h>
#include <muster/data/loader.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace bench {

/// The work of examples/minimal: samples of 64 numbers; Linear(64, 64), ReLU, Linear(64, 10); the
/// loss is the mean of squares; batches of 8; SGD with a rate of 0.1; logged every 50 steps.
struct Sample {
  at::Tensor x;
};

constexpr int64_t log_every_n_steps = 50;

/// What somebody would write on libtorch alone. It reads the same loader as the Trainer, one share
/// of it where several ranks train.
class BareLoop {
 public:
  BareLoop() = default;
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;
  virtual ~BareLoop() = default;

  /// Starts loading an epoch.
  virtual void open(int64_t epoch) = 0;
  virtual void step() = 0;
};

std::unique_ptr<BareLoop> make_bare_loop(const muster::Loader<Sample>& loader);
/// On c10d::Reducer, as Python's DDP uses it. All ranks of `group` call it; its name is new for
/// each one.
std::unique_ptr<BareLoop> make_reducer_loop(const muster::Loader<Sample>& loader,
                                            const muster::Group& group, const char* name);

}  // namespace bench
