// SPDX-License-Identifier: Apache-2.0
// The result of the training loop.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/agreement.h"

namespace zsq::train {

struct LayerReport {
  std::string name;               // the layer's node name
  double crossings = 0;           // mean share of codes that crossed per step, grid fixed
  double range_update_flips = 0;  // mean share of codes that change by recomputed ranges alone
  double k = 1;                   // mean factor of gradient inundation
};

// The validation checks of a run (finetune.validation_checks), all on the same held-out images.
struct BestCheckpoint {
  std::int64_t iteration = 0;   // at which the student had the smallest KL
  std::int64_t checked_at = 0;  // of the last check
  std::int64_t checks = 0;
  double seconds = 0;  // of all checks
  // Before fine-tuning; of the best checkpoint, which is the result; after the last iteration.
  Agreement start, kept, last;
};

struct TrainReport {
  std::int64_t iterations = 0;  // done, warm-up included
  std::int64_t skipped = 0;     // steps with non-finite gradients
  double seconds = 0, warmup_seconds = 0;
  double loss_generator = 0, loss_student = 0;  // means of the last 5 % of the run
  std::vector<LayerReport> layers;
  std::optional<BestCheckpoint> kept;  // empty without validation checks
};

}  // namespace zsq::train
