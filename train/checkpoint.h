// SPDX-License-Identifier: Apache-2.0
// The state of a run on disk: one safetensors file, written whole or not at all.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "train/optimizers.h"
#include "train/trainer.h"

namespace zsq::train {

// What has happened so far, besides what the tensors hold.
struct Tally {
  std::int64_t iterations = 0, skipped = 0;
  double share = 0;  // of the schedule
  bool calibrated = false;
  double seconds = 0, warmup_seconds = 0;
  // Sums over the last 5 % of the run.
  double loss_generator = 0, loss_student = 0;
  std::int64_t losses_generator = 0, losses_student = 0;
  double student_rate = 1;  // factor on the student's rates, where it had to go back

  double mean_loss_generator() const { return mean(loss_generator, losses_generator); }
  double mean_loss_student() const { return mean(loss_student, losses_student); }
  static double mean(double sum, std::int64_t n) {
    return n > 0 ? sum / static_cast<double>(n) : 0;
  }
};

// Every setting that decides the result, and the seed, by key.
using Settings = std::map<std::string, std::string>;
Settings settings_of(const TrainJob& job);

struct Checkpoint {
  NamedTensors tensors;
  Tally tally;
  Settings settings;
};

// Error(usage) names the first of `settings` that a file was not written with.
void require_same(const Settings& settings, const Settings& written,
                  const std::filesystem::path& file);

void save(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Tensors go to `device`. Error(bad_input): damaged, or not a checkpoint. Error(usage) names the
// first setting that differs from `settings`.
Checkpoint load(const std::filesystem::path& path, const Settings& settings, at::Device device);

// Of a checkpoint, whatever its settings. Error(bad_input): damaged, or not a checkpoint.
std::int64_t iterations_in(const std::filesystem::path& path);

}  // namespace zsq::train
