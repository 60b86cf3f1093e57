#include "sync_work.h"

#include <muster/comm/c10d.h>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace bench {

namespace {

class GlooGather final : public BareGather {
 public:
  GlooGather(const muster::Group& group, const char* name, const std::vector<int64_t>& sizes)
      : process_group_{muster::make_process_group(group, name)},
        backend_{process_group_->getBackend(c10::DeviceType::CPU)} {
    for (const int64_t size : sizes) {
      inputs_.push_back(at::zeros({size}, at::kByte));
      outputs_.push_back(at::empty({size * group.size()}, at::kByte));
    }
  }

  void run() override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      backend_->_allgather_base(outputs_[i], inputs_[i])->wait();
    }
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> process_group_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::vector<at::Tensor> inputs_;
  std::vector<at::Tensor> outputs_;
};

}  // namespace

std::unique_ptr<BareGather> make_bare_gather(const muster::Group& group, const char* name,
                                             const std::vector<int64_t>& sizes) {
  return std::make_unique<GlooGather>(group, name, sizes);
}

}  // namespace bench
