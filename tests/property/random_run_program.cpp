// usage: random_run_program SEED RUN_DIR    One draw on the ranks of the job.

#include "support/random_run.h"

#include <muster/base/error.h>
#include <muster/train/job.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    muster::test::run_draw(std::strtoull(argv[1], nullptr, 10), muster::test::Fault::none, argv[2],
                           muster::job_group());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_run_program: %s\n", error.what());
    return 1;
  }
}
