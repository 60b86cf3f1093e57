#include "phase_internal.h"

#include <muster/base/format.h>

namespace muster {

std::string to_string(const Phase& phase) {
  const auto at = [&phase](std::string_view part) {
    return format("{}, epoch {}, {}", to_string(phase.stage), phase.epoch, part);
  };
  // Training has one loader, and steps.
  const std::string where =
      phase.stage == Stage::fit ? format("step {}", phase.step) : format("loader {}", phase.loader);
  switch (phase.part) {
    case Phase::Part::none:
      return "";
    case Phase::Part::begin:
      return at("making the run folder ready");
    case Phase::Part::before:
      return at("hooks before the batches");
    case Phase::Part::load:
      return at(format("{}, loading batch {}", where, phase.batch));
    case Phase::Part::batch:
      return at(format("{}, batch {}", where, phase.batch));
    case Phase::Part::step:
      return at(format("{}, the optimizer's step", where));
    case Phase::Part::after:
      return at("hooks after the batches");
    case Phase::Part::sync:
      return at("merging what the ranks logged");
    case Phase::Part::publish:
      return at("writing the run folder");
  }
  return "";
}

}  // namespace muster
