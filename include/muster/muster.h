#pragma once

/// Everything a program needs. Sources that need less include less: this header pulls in
/// torch/nn/module.h.

#include <muster/cli/cli.h>
#include <muster/comm/gather.h>
#include <muster/data/loader.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/confusion_matrix.h>
#include <muster/metrics/image_quality.h>
#include <muster/metrics/matting.h>
#include <muster/metrics/mean_average_precision.h>
#include <muster/metrics/ranking.h>
#include <muster/metrics/regression.h>
#include <muster/metrics/segmentation.h>
#include <muster/train/early_stopping.h>
#include <muster/train/ema.h>
#include <muster/train/learning_rate_monitor.h>
#include <muster/train/model_checkpoint.h>
#include <muster/train/model_summary.h>
#include <muster/train/own_loop.h>
#include <muster/train/sync_batch_norm.h>
#include <muster/train/timer.h>
#include <muster/train/trainer.h>
