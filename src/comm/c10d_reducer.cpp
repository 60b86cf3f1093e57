#include "src/comm/gradients_internal.h"

#include <muster/base/check.h>
#include <muster/comm/c10d.h>

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace muster::detail {

namespace {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

constexpr size_t broadcast_bytes = size_t{250} << 20U;

/// A Reducer whose buckets stay as they are.
class FixedReducer final : public c10d::Reducer {
 public:
  FixedReducer(const std::vector<at::Tensor>& tensors,
               const std::unordered_map<size_t, std::string>& names, const ProcessGroupPtr& group,
               const ReducerOptions& options)
      : Reducer{tensors,
                buckets_of(tensors, options),
                group,
                std::vector<bool>(tensors.size(), false),
                options.bucket_bytes,
                options.find_unused_parameters,
                /*gradient_as_bucket_view=*/false,
                names,
                options.first_bucket_bytes,
                /*skip_all_reduce_unused_params=*/false,
                /*use_python_reducer=*/false,
                /*bucket_bytes_cap_list=*/{}} {
    // A Reducer that expects a rebuild notes every gradient of every step until it comes.
    has_rebuilt_bucket_ = true;
  }

  /// Has `then` called within a backward that synchronises, by the thread and at the moment in
  /// which the last gradient has come, but for that of the last tensor.
  void when_all_but_last(const std::function<void()>& then) {
    for (size_t i = 0; i + 1 < grad_accumulators_.size(); ++i) {
      const auto& accumulator = grad_accumulators_[i];
      const auto hook = [this, then](const auto& outputs, const auto& /*inputs*/) {
        if (is_turn_of_last()) then();
        return outputs;
      };
      // The Reducer removes what is in this list.
      hooks_.emplace_back(accumulator->add_post_hook(
                              std::make_unique<torch::autograd::utils::LambdaPostHook>(hook)),
                          accumulator);
    }
  }

  void begin_backward(const std::vector<at::Tensor>& outputs) {
    last_had_its_turn_ = false;
    prepare_for_backward(outputs);
  }

 private:
  /// Once a backward.
  bool is_turn_of_last() {
    const std::lock_guard lock{mutex_};
    return expect_autograd_hooks_ && pending() == 1 && !std::exchange(last_had_its_turn_, true);
  }

  /// Gradients that this backward still owes.
  [[nodiscard]] size_t pending() const {
    return std::accumulate(buckets_.begin(), buckets_.end(), size_t{0},
                           [](size_t sum, const Bucket& bucket) { return sum + bucket.pending; });
  }

  /// Gradients come in about the reverse order of the parameters; the notes, last in `tensors`,
  /// come after all of them.
  static std::vector<std::vector<size_t>> buckets_of(const std::vector<at::Tensor>& tensors,
                                                     const ReducerOptions& options) {
    std::vector<at::Tensor> arriving(tensors.rbegin() + 1, tensors.rend());
    arriving.push_back(tensors.back());
    std::vector<int64_t> indices(tensors.size());
    std::iota(indices.begin(), indices.end(), 0);
    std::reverse(indices.begin(), indices.end() - 1);
    const std::vector<size_t> limits{static_cast<size_t>(options.first_bucket_bytes),
                                     static_cast<size_t>(options.bucket_bytes)};
    return std::get<0>(c10d::compute_bucket_assignment_by_size(
        arriving, limits, std::vector<bool>(tensors.size(), false), indices));
  }

  bool last_had_its_turn_ = false;
};

/// What carries the notes: a leaf beside the parameters, of the type of one of them so that it
/// rides in their bucket.
at::Tensor make_carrier(const NamedTensors& parameters, size_t numbers) {
  auto like = parameters.front().second.options().dtype(at::kFloat);
  for (const auto& [name, parameter] : parameters) {
    const auto type = parameter.scalar_type();
    if (type != at::kFloat && type != at::kDouble) continue;
    like = parameter.options();
    break;
  }
  return at::zeros({static_cast<int64_t>(numbers)}, like.requires_grad(false))
      .set_requires_grad(true);
}

class C10dReducer final : public GradientReducer {
 public:
  C10dReducer(Group group, ProcessGroupPtr process_group, NamedTensors parameters,
              const ReducerOptions& options)
      : group_{std::move(group)},
        process_group_{std::move(process_group)},
        parameters_{std::move(parameters)},
        options_{options},
        carrier_{make_carrier(parameters_, numbers() * ranks())},
        carrier_output_{carrier_.view({-1})},
        all_notes_(options.notes * ranks()) {
    std::vector<at::Tensor> tensors;
    std::unordered_map<size_t, std::string> names;
    for (const auto& [name, parameter] : parameters_) {
      names[tensors.size()] = name;
      tensors.push_back(parameter);
    }
    names[tensors.size()] = "(notes of the ranks)";
    tensors.push_back(carrier_);
    reducer_ = std::make_shared<FixedReducer>(tensors, names, process_group_, options);
    if (!options.find_unused_parameters) {
      reducer_->when_all_but_last([this] { send_within_backward(); });
      return;
    }
    // The Reducer goes to its logger without a look whether it has one.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
  }
  C10dReducer(const C10dReducer&) = delete;
  C10dReducer& operator=(const C10dReducer&) = delete;
  ~C10dReducer() override {
    // Gloo's destructor would wait for a collective that never ends, until that times out.
    if (!idle_) static_cast<void>(process_group_.release());
  }

  void broadcast(const std::vector<at::Tensor>& tensors) override {
    std::vector<at::Tensor> values;
    values.reserve(tensors.size());
    for (const auto& tensor : tensors) values.push_back(tensor.detach());
    idle_ = false;
    communicate([&] { c10d::broadcast_coalesced(process_group_, values, broadcast_bytes, 0); });
    idle_ = true;
  }

  void prepare_for_forward() override { reducer_->prepare_for_forward(); }

  std::span<const double> reduce(const at::Tensor& loss, const at::Tensor& gradient,
                                 std::span<const double> notes) override {
    idle_ = false;
    mine_.assign(notes.begin(), notes.end());
    sent_ = false;
    has_unused_ = false;
    begin_backward(loss);
    if (loss.defined()) backward(loss, gradient);
    std::vector<size_t> unused;
    if (loss.defined() && !sent_ && !options_.find_unused_parameters) {
      unused = unreached(loss, parameters_);
      has_unused_ = !unused.empty();
    }
    communicate([&] {
      if (!sent_) add_zeros(loss, unused);
      if (!sent_) {
        carrier_.mutable_grad().reset();
        carrier_.backward(values_to_carry());
      }
      reducer_->check_finalized();
    });
    const bool all_used = read_notes();
    idle_ = true;
    if (!all_used) fail_unused(group_.transport(), parameters_, unused);
    return all_notes_;
  }

 private:
  [[nodiscard]] size_t ranks() const { return static_cast<size_t>(group_.size()); }
  /// Of each rank: its notes, and whether it has unused parameters.
  [[nodiscard]] size_t numbers() const { return options_.notes + 1; }

  /// What is thrown while the user's graph runs is the user's; here it is the network's.
  template <typename Body>
  static void communicate(const Body& body) {
    try {
      body();
    } catch (const c10::Error& error) {
      fail(ErrorKind::peer_lost, "another rank is gone or hangs: {}",
           error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(ErrorKind::peer_lost, "another rank is gone or hangs: {}", error.what());
    }
  }

  /// The outputs matter where unused parameters are searched: those that the outputs do not depend
  /// on go out as they are. The carrier's own gradient comes with a backward of its own.
  void begin_backward(const at::Tensor& loss) {
    std::vector<at::Tensor> outputs;
    if (options_.find_unused_parameters) {
      outputs.push_back(carrier_output_);
      if (loss.defined()) outputs.push_back(loss);
    }
    reducer_->begin_backward(outputs);
  }

  void backward(const at::Tensor& loss, const at::Tensor& gradient) {
    try {
      loss.backward(gradient);
    } catch (...) {
      if (!communicating_) throw;
      communicate([] { throw; });
    }
  }

  /// Once all parameters have got their gradients. A backward of the carrier's own would cost about
  /// as much as four layers.
  void send_within_backward() {
    auto& engine = torch::autograd::Engine::get_default_engine();
    communicating_ = true;
    carrier_.mutable_grad() = values_to_carry();
    sent_ = true;
    // The Reducer queues its wait for the other ranks, which comes once the user's graph is done.
    engine.queue_callback([this] { communicating_ = true; });
    reducer_->autograd_hook(parameters_.size());
    engine.queue_callback([this] { communicating_ = false; });
    communicating_ = false;
  }

  /// So that the others, who have gradients for all parameters, do not wait for ours.
  void add_zeros(const at::Tensor& loss, const std::vector<size_t>& unused) const {
    if (options_.find_unused_parameters) return;
    std::vector<at::Tensor> owed;
    if (!loss.defined()) {
      for (const auto& [name, parameter] : parameters_) owed.push_back(parameter);
    }
    for (const size_t i : unused) owed.push_back(parameters_[i].second);
    if (owed.empty()) return;
    std::vector<at::Tensor> zeros;
    zeros.reserve(owed.size());
    for (const auto& parameter : owed) zeros.push_back(at::zeros_like(parameter));
    torch::autograd::backward(owed, zeros);
  }

  [[nodiscard]] at::Tensor values_to_carry() const {
    at::Tensor values = at::zeros({carrier_.numel()}, at::kDouble);
    auto* mine = values.mutable_data_ptr<double>() + static_cast<size_t>(group_.rank()) * numbers();
    std::copy(mine_.begin(), mine_.end(), mine);
    mine[options_.notes] = has_unused_ ? 1 : 0;
    return values.to(carrier_.options());
  }

  /// Whether no rank has unused parameters.
  bool read_notes() {
    const at::Tensor values = carrier_.grad().to(at::kCPU, at::kDouble);
    const auto* value = values.const_data_ptr<double>();
    const auto size = static_cast<double>(ranks());
    bool all_used = true;
    auto note = all_notes_.begin();
    for (size_t rank = 0; rank < ranks(); ++rank, value += numbers()) {
      note = std::transform(value, value + options_.notes, note,
                            [size](double number) { return number * size; });
      all_used = all_used && value[options_.notes] == 0;
    }
    return all_used;
  }

  Group group_;
  ProcessGroupPtr process_group_;
  NamedTensors parameters_;
  ReducerOptions options_;
  at::Tensor carrier_;
  at::Tensor carrier_output_;
  std::vector<double> all_notes_;
  std::vector<double> mine_{};
  bool has_unused_ = false;
  bool sent_ = false;           // the notes, in this backward
  bool communicating_ = false;  // what throws in a backward is not the user's
  std::shared_ptr<FixedReducer> reducer_{};
  std::shared_ptr<c10d::Logger> logger_{};
  bool idle_ = true;
};

}  // namespace

std::unique_ptr<GradientReducer> make_c10d_reducer(Group& group, NamedTensors parameters,
                                                   const ReducerOptions& options) {
  // All ranks have the same count, which rises: a name that was not used before.
  const auto name = format("gradients/{}", group.counts().header_rounds);
  group.barrier();
  return std::make_unique<C10dReducer>(group, make_process_group(group, name),
                                       std::move(parameters), options);
}

}  // namespace muster::detail
