#pragma once

#include <muster/data/loader.h>

#include <optional>

namespace muster {

/// The loaders of a program by stage (Lightning's names); those it has no data for stay empty.
template <typename S>
struct DataModule {
  std::optional<Loader<S>> train_dataloader{};
  std::optional<Loader<S>> val_dataloader{};
  std::optional<Loader<S>> test_dataloader{};
  std::optional<Loader<S>> predict_dataloader{};
};

}  // namespace muster
