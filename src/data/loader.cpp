#include <c10/util/Exception.h>
#include <muster/base/check.h>
#include <muster/data/loader.h>

#include <algorithm>

namespace muster::detail {

void check_loader(const LoaderOptions& options, bool has_dataset, LoaderKind kind) {
  check(has_dataset, "a loader needs a data set, found a null pointer");
  check(options.batch_size >= 1, "batch_size must be at least 1, found {}", options.batch_size);
  check(options.num_workers >= 0, "num_workers must be at least 0, found {}", options.num_workers);
  check(options.prefetch >= 1, "prefetch must be at least 1, found {}", options.prefetch);
  check(!options.shuffle || kind == LoaderKind::order,
        "shuffle is for a data set in its own order; a sampler or a stream decides on its order "
        "itself");
  check(kind != LoaderKind::batch_sampler || (options.batch_size == 1 && !options.drop_last),
        "a batch sampler decides on its batches: leave batch_size and drop_last out");
}

void check_share(const Share& share) {
  check(share.limit >= 0, "a limit of batches must be at least 0, found {}", share.limit);
  check(share.world_size >= 1 && share.rank >= 0 && share.rank < share.world_size,
        "rank {} is not among {} ranks", share.rank, share.world_size);
  check(share.first >= 0, "batches count from 0, found {} as the first of a share", share.first);
}

int64_t batches_left(const Share& share, int64_t batches) {
  return std::max<int64_t>(0, std::min(share.limit, batches) - share.first);
}

void rethrow_at(const std::string& place, const std::string& dataset) {
  const std::string prefix =
      place + (dataset.empty() ? "" : " of data set '" + dataset + "'") + ": ";
  try {
    throw;
  } catch (const Error& error) {
    throw Error{error.kind(), prefix + error.what(), error.where()};
  } catch (const c10::Error& error) {
    fail(ErrorKind::user, "{}{}", prefix, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(ErrorKind::user, "{}{}", prefix, error.what());
  } catch (...) {
    fail(ErrorKind::user, "{}an exception that is no std::exception", prefix);
  }
}

}  // namespace muster::detail
