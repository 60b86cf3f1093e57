#include "src/train/replicas_internal.h"

#include "ddp_net.h"
#include "support/temp_folder.h"

#include <muster/base/error.h>
#include <muster/base/files.h>

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

/// What each of `ranks` threads is told; "" for nothing.
std::vector<std::string> told(int ranks, const std::function<void(Group&)>& body) {
  std::vector<std::string> all(static_cast<size_t>(ranks));
  run_threads(ranks, [&](Group& group) {
    try {
      body(group);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::mismatch);
      all[static_cast<size_t>(group.rank())] = error.what();
      group.barrier();
    }
  });
  return all;
}

TEST(Replicas, ParametersThatDifferInABitAreNamedOnEveryRank) {
  for (const int ranks : {2, 3}) {
    for (const bool differ : {false, true}) {
      const auto all = told(ranks, [&](Group& group) {
        DdpNet net{{.dtype = at::kFloat}};
        const c10::AutoGradMode no_grad{false};
        if (differ && group.rank() == 1) {
          net.parameters[1].second.select(0, 15).mul_(1.0 + 1.2e-7);
        }
        check_equal_parameters(group, net.parameters, 12);
      });
      for (const auto& text : all) {
        EXPECT_EQ(text.find("come apart by step 12: rank 1 has other values of 'a.bias' "
                            "(float32[16]) than rank 0") != std::string::npos,
                  differ)
            << text;
      }
    }
  }
}

TEST(Replicas, AnotherCheckpointOnOneRankIsNamed) {
  const TempFolder folder;
  write_file_atomically(folder / "same/manifest.json", "{}");
  write_file_atomically(folder / "other/manifest.json", "{ }");
  for (const bool differ : {false, true}) {
    const auto all = told(3, [&](Group& group) {
      check_same_checkpoint(group, folder / (differ && group.rank() == 2 ? "other" : "same"));
    });
    for (const auto& text : all) {
      EXPECT_EQ(text.find("rank 2 has read another checkpoint") != std::string::npos, differ);
    }
  }
}

}  // namespace
}  // namespace muster::test
