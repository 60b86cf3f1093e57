#include "ranks.h"

#include "bytes.h"
#include "thumbnails.h"

#include <muster/base/check.h>
#include <muster/comm/tcp.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace muster::app {

namespace {

void put(ByteWriter& out, const Problem& problem) {
  out.put(problem.place);
  out.put(int64_t{problem.kind == Problem::Kind::warning});
  out.put(problem.text);
}

void take(ByteReader& in, Problem& problem) {
  in.take(problem.place);
  int64_t is_warning = 0;
  in.take(is_warning);
  problem.kind = is_warning != 0 ? Problem::Kind::warning : Problem::Kind::error;
  in.take(problem.text);
}

void put(ByteWriter& out, const MattingSample& sample) {
  out.put(sample.stem);
  out.put(sample.prediction.native());
  out.put(sample.truth.native());
  out.put(int64_t{sample.trimap.has_value()});
  out.put(sample.trimap.value_or("").native());
}

void take(ByteReader& in, MattingSample& sample) {
  std::string text;
  in.take(sample.stem);
  in.take(text);
  sample.prediction = text;
  in.take(text);
  sample.truth = text;
  int64_t has_trimap = 0;
  in.take(has_trimap);
  in.take(text);
  if (has_trimap != 0) {
    sample.trimap = text;
  }
}

void put(ByteWriter& out, const RegionRow& region) {
  out.put(region.n);
  for (const auto& column : error_columns) {
    out.put(region.values.value_or(ErrorValues{}).*column.member);
  }
}

void take(ByteReader& in, RegionRow& region) {
  in.take(region.n);
  ErrorValues values;
  for (const auto& column : error_columns) {
    in.take(values.*column.member);
  }
  if (region.n > 0) {
    region.values = values;
  }
}

void put(ByteWriter& out, const ImageRow& row) {
  out.put(row.index);
  out.put(row.width);
  out.put(row.height);
  out.put(int64_t{row.unknown.has_value()});
  put(out, row.unknown.value_or(RegionRow{}));
  put(out, row.all);
}

void take(ByteReader& in, ImageRow& row) {
  in.take(row.index);
  in.take(row.width);
  in.take(row.height);
  int64_t has_unknown = 0;
  in.take(has_unknown);
  RegionRow unknown;
  take(in, unknown);
  if (has_unknown != 0) {
    row.unknown = unknown;
  }
  take(in, row.all);
}

void put(ByteWriter& out, int64_t number) { out.put(number); }
void take(ByteReader& in, int64_t& number) { in.take(number); }

template <typename T>
void put_list(ByteWriter& out, const std::vector<T>& list) {
  out.put(static_cast<int64_t>(list.size()));
  for (const auto& item : list) {
    put(out, item);
  }
}

template <typename T>
void take_list(ByteReader& in, std::vector<T>& list) {
  int64_t size = 0;
  in.take(size);
  list.clear();
  for (int64_t i = 0; i < size; ++i) {
    take(in, list.emplace_back());
  }
}

std::string bytes_of(const WorkResult& result) {
  ByteWriter out;
  put_list(out, result.rows);
  put_list(out, result.problems);
  put_list(out, result.too_large);
  out.put(static_cast<int64_t>(result.thumbnails.size()));
  for (const auto& [index, thumbnails] : result.thumbnails) {
    out.put(index);
    out.put(thumbnails.prediction);
    out.put(thumbnails.truth);
    out.put(thumbnails.error);
  }
  return out.bytes();
}

WorkResult result_from(std::string_view bytes) {
  ByteReader in{bytes};
  WorkResult result;
  take_list(in, result.rows);
  take_list(in, result.problems);
  take_list(in, result.too_large);
  int64_t size = 0;
  in.take(size);
  for (int64_t i = 0; i < size; ++i) {
    int64_t index = 0;
    in.take(index);
    Thumbnails& thumbnails = result.thumbnails[index];
    in.take(thumbnails.prediction);
    in.take(thumbnails.truth);
    in.take(thumbnails.error);
  }
  return result;
}

template <typename T>
void append(std::vector<T>& list, std::vector<T>& more) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

void sort(WorkResult& result) {
  std::sort(result.rows.begin(), result.rows.end(),
            [](const ImageRow& a, const ImageRow& b) { return a.index < b.index; });
  std::sort(result.problems.begin(), result.problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place, a.text) < std::tie(b.place, b.text);
  });
  std::sort(result.too_large.begin(), result.too_large.end());
}

}  // namespace

Group matting_group(const std::optional<RankEnv>& env) {
  if (!env || env->world_size == 1) {
    return Group::self();
  }
  check(!env->agent_store,
        "torchrun keeps the job's port to itself; start the ranks with 'muster launch -n {} muster "
        "matting ...'",
        env->world_size);
  // Ranks differ by what their images cost; only long waits are worth a line.
  return make_tcp_group({.rank = env->rank,
                         .size = env->world_size,
                         .master_addr = env->master_addr,
                         .master_port = env->master_port,
                         .store_fd = env->store_fd,
                         .one_host = env->local_world_size == env->world_size,
                         .job = env->job,
                         .group = {.report_after = 300}});
}

MatchedFiles share_files(Group& group, const MatchedFiles& mine) {
  if (group.size() == 1) {
    return mine;
  }
  ByteWriter out;
  if (group.rank() == 0) {
    put_list(out, mine.samples);
    put_list(out, mine.problems);
  }
  const std::string bytes = group.broadcast(out.bytes(), 0);
  ByteReader in{bytes};
  MatchedFiles files;
  take_list(in, files.samples);
  take_list(in, files.problems);
  return files;
}

std::optional<WorkResult> gather_results(Group& group, const WorkResult& mine,
                                         const WorkOptions& options) {
  WorkResult all;
  for (const auto& contribution : group.all_gather(bytes_of(mine))) {
    if (group.rank() == 0) {
      merge_results(all, result_from(contribution.bytes), options);
    }
  }
  return group.rank() == 0 ? std::optional{std::move(all)} : std::nullopt;
}

void merge_results(WorkResult& result, WorkResult more, const WorkOptions& options) {
  append(result.rows, more.rows);
  append(result.problems, more.problems);
  append(result.too_large, more.too_large);
  result.thumbnails.merge(more.thumbnails);
  sort(result);
  WorstThumbnails worst{options.most_thumbnails};
  for (const auto& row : result.rows) {
    const auto found = result.thumbnails.find(row.index);
    if (found != result.thumbnails.end()) {
      worst.put(badness(row, options.has_trimaps), row.index, std::move(found->second));
    }
  }
  result.thumbnails = worst.take();
}

}  // namespace muster::app
