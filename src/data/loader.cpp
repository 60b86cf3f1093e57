#include <c10/util/Exception.h>
#include <muster/base/check.h>
#include <muster/data/loader.h>

#include <algorithm>

namespace muster::detail {

void check_loader(const LoaderOptions& options, bool has_dataset) {
  check(has_dataset, "a loader needs a data set, found a null pointer");
  check(options.num_workers >= 0, "num_workers must be at least 0, found {}", options.num_workers);
  check(options.prefetch >= 1, "prefetch must be at least 1, found {}", options.prefetch);
}

int64_t batches_left(const Share& share, int64_t batches) {
  check(share.limit >= 0, "a limit of batches must be at least 0, found {}", share.limit);
  check(share.world_size > 0 && share.first >= 0 && share.first % share.world_size == 0,
        "the first batch of a share is a multiple of its {} ranks, found {}", share.world_size,
        share.first);
  return std::max<int64_t>(0, std::min(share.limit, batches) - share.first);
}

void rethrow_for_sample(int64_t index, const std::string& name) {
  const std::string place = "sample " + std::to_string(index) +
                            (name.empty() ? "" : " of data set '" + name + "'") + ": ";
  try {
    throw;
  } catch (const Error& error) {
    throw Error{error.kind(), place + error.what(), error.where()};
  } catch (const c10::Error& error) {
    fail(ErrorKind::user, "{}{}", place, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(ErrorKind::user, "{}{}", place, error.what());
  } catch (...) {
    fail(ErrorKind::user, "{}an exception that is no std::exception", place);
  }
}

}  // namespace muster::detail
