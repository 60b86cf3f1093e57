#include <muster/comm/c10d.h>

#include "src/comm/loss_internal.h"
#include "src/comm/sockets_internal.h"

#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/proc/signals.h>

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace muster {

namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using GlooPtr = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds{static_cast<int64_t>(seconds * 1000)};
}

/// The message without the C++ stack that c10 appends.
std::string text_of(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
}

/// How the ranks of a job find each other.
class Rendezvous {
 public:
  Rendezvous(const C10dOptions& options, std::string master)
      : options_{options}, master_{std::move(master)} {}

  /// The store of the job, once every rank is at it.
  StorePtr meet() {
    if (!hosts_store() && !options_.agent_store) {
      detail::wait_for_listener(master_, options_.master_port,
                                [&](const std::string& reason) { check_time(reason); });
    }
    const StorePtr store = open_store();
    if (!options_.agent_store) check_job(store);
    auto own =
        c10::make_intrusive<c10d::PrefixStore>(sha256_hex("keys " + options_.key_prefix), store);
    check(own->add(key_of(options_.rank), 1) == 1, ErrorKind::rendezvous,
          "another process is rank {} of the job at {} port {} already; give each job a "
          "MASTER_PORT of its own",
          options_.rank, master_, options_.master_port);
    wait_for_ranks(own);
    return own;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool hosts_store() const { return options_.rank == 0 && !options_.agent_store; }
  static std::string key_of(int rank) { return format("rank/{}", rank); }

  [[nodiscard]] bool is_over() const { return stop_requested() || Clock::now() >= deadline_; }

  void check_time(const std::string& reason) const {
    check(!is_over(), ErrorKind::rendezvous,
          "rank {} of {} did not find the others at {} port {} within {} s: {}", options_.rank,
          options_.size, options_.master_addr, options_.master_port, options_.rendezvous_timeout,
          stop_requested() ? "it was told to stop" : reason);
  }

  StorePtr open_store() const;
  /// Two jobs at one port would count each other's ranks. The digest tells nobody the prefix.
  void check_job(const StorePtr& store) const;
  void wait_for_ranks(const StorePtr& store) const;

  const C10dOptions& options_;
  std::string master_;
  Clock::time_point deadline_ =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>{options_.rendezvous_timeout});
};

void Rendezvous::check_job(const StorePtr& store) const {
  const std::string mine = sha256_hex(format("{} {}", options_.size, options_.key_prefix));
  if (hosts_store()) {
    store->set("muster/job", mine);
    return;
  }
  const auto found = store->get_to_str("muster/job");
  check(found == mine, ErrorKind::rendezvous,
        "the store at {} port {} is that of another job, or of another number of ranks than {}; "
        "give each job a MASTER_PORT of its own",
        master_, options_.master_port, options_.size);
}

void Rendezvous::wait_for_ranks(const StorePtr& store) const {
  // Asked again and again: TCPStore's own wait cannot be ended, and writes warnings when it has
  // been in vain.
  constexpr auto pause = std::chrono::milliseconds{5};
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(options_.size));
  for (int rank = 0; rank < options_.size; ++rank) all.push_back(key_of(rank));
  while (!store->check(all)) {
    if (is_over()) {
      std::string missing;
      for (int rank = 0; rank < options_.size; ++rank) {
        if (store->check({all[static_cast<size_t>(rank)]})) continue;
        missing += format("{}{}", missing.empty() ? "" : ", ", rank);
      }
      check_time(format("no rank {} has come", missing));
    }
    std::this_thread::sleep_for(pause);
  }
}

StorePtr Rendezvous::open_store() const {
  const C10dOptions& options = options_;
  const std::string& master = master_;
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<uint16_t>(options.master_port);
  tcp.isServer = hosts_store();
  tcp.waitWorkers = false;
  tcp.numWorkers = static_cast<size_t>(options.size);
  tcp.timeout = milliseconds_of(options.rendezvous_timeout);
  if (tcp.isServer) {
    // Left alone, TCPStore listens on all interfaces.
    const int fd =
        options.store_fd >= 0 ? options.store_fd : detail::listen_at(master, options.master_port);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    tcp.masterListenFd = fd;
  }
  return c10::make_intrusive<c10d::TCPStore>(master, tcp);
}

GlooPtr make_gloo(const StorePtr& store, const std::string& name, const C10dOptions& options,
                  const std::string& address) {
  const detail::SocketsClosedOnExec gloos_are;
  auto gloo_options =
      c10d::ProcessGroupGloo::Options::create(milliseconds_of(options.rendezvous_timeout));
  gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  gloo_options->threads = 1;
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(name, store), options.rank, options.size,
      gloo_options);
  static_cast<c10d::Backend&>(*gloo).setTimeout(milliseconds_of(options.timeout));
  return gloo;
}

class C10dTransport final : public Transport {
 public:
  explicit C10dTransport(const C10dOptions& options) : options_{options} {
    const std::string master = detail::resolve(options.master_addr);
    address_ = options.one_host || detail::is_loopback(master)
                   ? "127.0.0.1"
                   : detail::local_address_towards(master);
    store_ = Rendezvous{options, master}.meet();
    gloo_ = make_gloo(store_, "control", options, address_);
  }
  C10dTransport(const C10dTransport&) = delete;
  C10dTransport& operator=(const C10dTransport&) = delete;
  ~C10dTransport() override {
    // Its destructor would wait for a collective that never ends, until that times out.
    if (loss_.is_noted()) static_cast<void>(gloo_.release());
  }

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }

  std::vector<std::string> exchange(std::string_view mine) override {
    const std::vector<int64_t> sizes(static_cast<size_t>(size()),
                                     static_cast<int64_t>(mine.size()));
    return exchange(mine, sizes);
  }

  std::vector<std::string> exchange(std::string_view mine,
                                    std::span<const int64_t> sizes) override {
    const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::string> all(sizes.size());
    if (largest == 0) return all;
    auto input = at::empty({largest}, at::kByte);
    std::copy(mine.begin(), mine.end(), static_cast<char*>(input.data_ptr()));
    auto output = at::empty({static_cast<int64_t>(size()) * largest}, at::kByte);
    all_gather(input, output);
    const auto* bytes = static_cast<const char*>(output.const_data_ptr());
    for (size_t r = 0; r < all.size(); ++r) {
      all[r].assign(bytes + static_cast<int64_t>(r) * largest, static_cast<size_t>(sizes[r]));
    }
    return all;
  }

  void abort(const std::string& reason) override {
    loss_.note("this rank has given up: " + reason);
  }

  c10::intrusive_ptr<c10d::ProcessGroup> process_group(const std::string& name) {
    auto gloo = make_gloo(store_, "further/" + name, options_, address_);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store_, rank(), size());
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    return group;
  }

 private:
  void all_gather(at::Tensor& input, at::Tensor& output) {
    loss_.check_none();
    try {
      gloo_->_allgather_base(output, input)->wait();
    } catch (const std::exception& error) {
      loss_.note("another rank is gone or hangs: " + text_of(error));
    }
    loss_.check_none();
  }

  const C10dOptions options_;
  std::string address_{};
  StorePtr store_{};
  GlooPtr gloo_{};
  detail::Loss loss_{};
};

}  // namespace

Group make_c10d_group(const C10dOptions& options) {
  check(options.size >= 1 && options.rank >= 0 && options.rank < options.size,
        "rank {} is no rank of a group of {}", options.rank, options.size);
  if (options.size == 1) return Group::self();
  check(options.store_fd >= 0 || (options.master_port > 0 && options.master_port <= UINT16_MAX),
        "{} is no port for the store of the job; set MASTER_PORT to 1..65535", options.master_port);
  try {
    return Group{std::make_unique<C10dTransport>(options), options.group};
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorKind::rendezvous,
         "rank {} of {} did not find the others at {} port {} within {} s: {}", options.rank,
         options.size, options.master_addr, options.master_port, options.rendezvous_timeout,
         text_of(error));
  }
}

bool has_process_groups(const Group& group) {
  return dynamic_cast<const C10dTransport*>(&group.transport()) != nullptr;
}

c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(const Group& group,
                                                          const std::string& name) {
  auto* transport = dynamic_cast<C10dTransport*>(&group.transport());
  check(transport != nullptr,
        "a process group of c10d needs a group that make_c10d_group made, of two ranks or more");
  return transport->process_group(name);
}

}  // namespace muster
