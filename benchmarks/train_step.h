// SPDX-License-Identifier: Apache-2.0
// Times the parts of a real training step.
#pragma once
#include "benchmarks/clock.h"
#include "generator/options.h"
#include "models/graph.h"
#include "quant/options.h"
#include "train/options.h"

namespace zsq::benchmarks {

struct StepSettings {
  GeneratorOptions generate;
  QuantOptions quantize;  // ranges are calibrated on one batch, whatever calibration_images says
  TrainOptions finetune;  // batch_size is the batch
  std::uint64_t seed = 0;
};

// Two untimed rounds, then `rounds` of a generator step and a student step. On a GPU, unless
// finetune.cuda_graphs is off, the whole is timed once more as fine-tuning runs it, recorded and
// without waiting for each part. Error(numeric_failure) if gradients are not finite: a step that is
// skipped tells no time.
StepReport time_training_step(const models::Model& teacher, const StepSettings& settings,
                              const MachinePeaks& machine, std::int64_t rounds, Observer& observer);

}  // namespace zsq::benchmarks
