// SPDX-License-Identifier: Apache-2.0
// The training loop: warm-up, calibration, fine-tuning. Prints nothing; reports to an Observer.
#pragma once
#include <filesystem>
#include <functional>

#include "core/observer.h"
#include "parallel/communicator.h"
#include "train/options.h"
#include "train/report.h"

namespace zsq::train {

class BankDraws;
class SystemNoise;

struct TrainJob {
  const models::Model& teacher;
  quant::Student& student;
  generator::Generator& generator;
  TrainOptions options;
  std::uint64_t seed = 0;
  // Seconds for the run and what comes after it, the time before a run was resumed included; the
  // schedule is scaled to fit. 0: none.
  double time_budget = 0;
  std::filesystem::path checkpoint = {};  // empty: none is written
  std::int64_t checkpoint_every = 0;      // iterations; 0: only at the end and when stopped
  bool resume = false;
  // Seconds that what follows the run will take; with a time budget it is asked before the first
  // iteration and once the student is calibrated.
  std::function<double()> seconds_after = [] { return 0.0; };
  // Images that take the place of the generator's, or of some of them. Without any of the
  // generator's there is no warm-up, and the generator stays as it is.
  const BankDraws* bank = nullptr;
  const SystemNoise* noise = nullptr;  // on the student's images, not on those of the teacher
  // Of finetune.teacher_views, every second one is mirrored.
  bool mirror = true;
  // The student has its activation ranges, and keeps them; otherwise they are taken at the end of
  // warm-up. A run that is resumed has those of its checkpoint.
  bool calibrated = false;
  // What finetune.validation_checks measure on; nothing may learn from these images. Undefined: the
  // generator makes them when fine-tuning begins. A run that is resumed has those of its
  // checkpoint.
  at::Tensor held_out = {};
  // Iterations after which their losses are read and reported together: reading waits for a GPU.
  // 0: each at once on a CPU and if there is a time budget, else 16.
  std::int64_t read_every = 0;
  // Called with the generator's images [N, C, H, W] of the first iteration, and of the one that
  // ends each sixth of the schedule.
  std::function<void(std::int64_t iteration, const at::Tensor& images)> on_images = {};
  // They share each batch, and all call run() with equal jobs. The result is that of one rank, but
  // for the order in which gradients and moments are summed. Rank 0 alone writes the checkpoint.
  parallel::Communicator& ranks = parallel::current();
};

// The student is calibrated at the end of warm-up and trained in place. With
// finetune.validation_checks it ends in the state that a check found best, perhaps the one that
// fine-tuning began with. Stopped by the observer: the checkpoint is written and Error(stopped)
// thrown. Too many skipped steps: Error(numeric_failure). Ranks that do not end an iteration with
// the same bits: Error(internal) at the next checkpoint, which is not written.
TrainReport run(const TrainJob& job, Observer& observer);

}  // namespace zsq::train
