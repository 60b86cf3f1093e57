#include "checkpoint_saver_internal.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

namespace muster {

CheckpointSaver::~CheckpointSaver() {
  try {
    wait();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: a checkpoint was not written: %s\n", error.what());
  }
}

void CheckpointSaver::save(std::function<void()> write) {
  wait();
  if (beside_) {
    running_ = std::async(std::launch::async, std::move(write));
  } else {
    write();
  }
}

void CheckpointSaver::poll() {
  if (running_.valid() && running_.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
    running_.get();
  }
}

void CheckpointSaver::wait() {
  if (running_.valid()) {
    running_.get();
  }
}

}  // namespace muster
