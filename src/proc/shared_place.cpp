#include "src/proc/shared_place_internal.h"

#include <muster/base/env.h>
#include <muster/base/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "src/proc/error_pipe_internal.h"

namespace muster::detail {

namespace {

PlaceMemory* map(int fd) {
  void* memory = mmap(nullptr, sizeof(PlaceMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<PlaceMemory*>(memory);
}

}  // namespace

SharedPlace::SharedPlace() : descriptor_{memfd_create("muster-place", MFD_CLOEXEC)} {
  if (descriptor_ && ftruncate(descriptor_.get(), sizeof(PlaceMemory)) == 0) {
    memory_ = map(descriptor_.get());
  }
}

SharedPlace::SharedPlace(SharedPlace&& other) noexcept
    : descriptor_{std::move(other.descriptor_)}, memory_{std::exchange(other.memory_, nullptr)} {}

SharedPlace& SharedPlace::operator=(SharedPlace&& other) noexcept {
  std::swap(memory_, other.memory_);
  descriptor_ = std::move(other.descriptor_);
  return *this;
}

SharedPlace::~SharedPlace() {
  if (memory_ != nullptr) {
    munmap(memory_, sizeof(PlaceMemory));
  }
}

std::string SharedPlace::text() const {
  if (memory_ == nullptr || memory_->what[0].load() == 0) {
    return "";
  }
  std::array<char, 2 * sizeof(uint64_t)> what{};
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t part = memory_->what[i].load();
    std::memcpy(what.data() + i * sizeof part, &part, sizeof part);
  }
  what.back() = '\0';
  std::string text = format("{}, epoch {}", what.data(), memory_->epoch.load());
  if (const int64_t step = memory_->step.load(); step >= 0) {
    text += format(", step {}", step);
  }
  if (const int64_t batch = memory_->batch.load(); batch >= 0) {
    text += format(", batch {}", batch);
  }
  return text;
}

void SharedPlace::tell_stop_signal(int signal) {
  if (memory_ != nullptr) {
    memory_->stop_signal.store(signal);
  }
}

PlaceMemory* inherited_place() {
  const auto variable = env_text("MUSTER_PLACE_FD");
  if (!variable) {
    return nullptr;
  }
  const int fd = std::atoi(variable->c_str());
  if (descriptor_variable(fd) != *variable) {
    return nullptr;
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return map(fd);
}

}  // namespace muster::detail
