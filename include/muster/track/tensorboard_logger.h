#pragma once

#include <muster/track/logger.h>

#include <filesystem>
#include <functional>
#include <memory>

namespace muster {

struct TensorBoardOptions {
  /// The folder of event files, such as run_dir/tensorboard; made when missing.
  std::filesystem::path dir{};
  /// Unix time in seconds, for tests; empty: the system's clock.
  std::function<double()> clock{};
};

/// Writes an event file of its own, dir/events.out.tfevents.TIME.HOST.PID.N; TIME is later than
/// that of every event file there, so that readers, which sort by name, see runs in their order.
/// Scalars (float32) have the tag NAME, images KEY/INDEX, texts KEY; the step is the optimizer
/// step. Each event is one write(2). Tables are passed over.
std::unique_ptr<Logger> make_tensorboard_logger(TensorBoardOptions options);

}  // namespace muster
