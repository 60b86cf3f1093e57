#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace bench {

/// Counts the operations of Gloo that this process starts, of all its process groups, while it
/// lives: torch announces each to its profilers, which are called without a context. One at a time.
class GlooOperations {
 public:
  GlooOperations() {
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback{count}.scopes({at::RecordScope::USER_SCOPE}));
  }
  GlooOperations(const GlooOperations&) = delete;
  GlooOperations& operator=(const GlooOperations&) = delete;
  ~GlooOperations() { at::removeCallback(handle_); }

  /// Those of the process so far.
  [[nodiscard]] static int64_t total() { return counter(); }

 private:
  static std::atomic<int64_t>& counter() {
    static std::atomic<int64_t> operations{0};
    return operations;
  }
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
    if (std::string_view{function.name()}.starts_with("gloo:")) {
      ++counter();
    }
    return nullptr;
  }

  at::CallbackHandle handle_{};
};

}  // namespace bench
