#pragma once

/// Everything a program needs. Sources that need less include less: this header pulls in
/// torch/nn/module.h.

#include <muster/cli/cli.h>
#include <muster/comm/gather.h>
#include <muster/data/loader.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/matting.h>
#include <muster/train/trainer.h>
