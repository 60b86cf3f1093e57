#pragma once

#include <muster/base/check.h>

#include <mutex>
#include <optional>
#include <string>

namespace muster::detail {

/// Why a transport has lost the other ranks, once it has. Any thread.
class Loss {
 public:
  /// The first reason stays.
  void note(const std::string& reason) {
    const std::lock_guard lock{mutex_};
    if (!reason_) reason_ = reason;
  }

  [[nodiscard]] bool is_noted() const {
    const std::lock_guard lock{mutex_};
    return reason_.has_value();
  }

  /// Throws the Error of kind `peer_lost` once there is a reason.
  void check_none() const {
    const std::lock_guard lock{mutex_};
    check(!reason_, ErrorKind::peer_lost, "{}", reason_.value_or(std::string{}));
  }

 private:
  mutable std::mutex mutex_{};
  std::optional<std::string> reason_{};
};

}  // namespace muster::detail
