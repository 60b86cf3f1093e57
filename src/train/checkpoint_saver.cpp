#include "checkpoint_saver_internal.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

namespace muster {

CheckpointSaver::~CheckpointSaver() {
  try {
    finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: a checkpoint was not written: %s\n", error.what());
  }
}

void CheckpointSaver::save(std::function<void()> write) {
  wait();
  if (beside_) {
    running_ = std::async(std::launch::async, std::move(write));
  } else {
    attempt(write);
  }
}

void CheckpointSaver::poll() {
  if (running_.valid() && running_.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
    wait();
  }
}

void CheckpointSaver::wait() {
  if (running_.valid()) {
    attempt([this] { running_.get(); });
  }
}

void CheckpointSaver::finish() {
  wait();
  if (const auto failure = std::exchange(failure_, nullptr)) {
    std::rethrow_exception(failure);
  }
}

void CheckpointSaver::attempt(const std::function<void()>& write) {
  try {
    write();
    failure_ = nullptr;
  } catch (const std::exception& error) {
    if (stops_) {
      throw;
    }
    std::fprintf(stderr, "muster: a checkpoint was not written, and the training goes on: %s\n",
                 error.what());
    failure_ = std::current_exception();
  }
}

}  // namespace muster
