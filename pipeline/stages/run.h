// SPDX-License-Identifier: Apache-2.0
// What the stages of a run share. Each stage is one function over it and over the student.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "eval/evaluate.h"
#include "pipeline/images/calibration_set.h"
#include "pipeline/images/held_out.h"
#include "pipeline/output_folder.h"
#include "pipeline/run_clock.h"
#include "pipeline/run_state.h"
#include "train/images/image_bank.h"
#include "train/trainer.h"

namespace zsq::pipeline {

struct Run {
  Recipe recipe;
  OutputFolder output;
  Observer& observer;
  RunClock clock;
  std::string sha256 = {};  // of the model's file
  models::Model teacher = {};
  double loading = 0;                                   // seconds that reading the model took
  std::unique_ptr<eval::ImageSource> real_images = {};  // to measure with; null: none
  BankSplit bank = {};                                  // undefined: no bank
  std::optional<train::BankDraws> bank_draws = {};      // of each batch of the student
  std::vector<HeldOutImages> held_out = {};

  std::uint64_t seed() const { return static_cast<std::uint64_t>(recipe.process.seed); }
  void say(const std::string& message) const { observer.on_message(LogLevel::info, message); }
};

// Called when `parts` layers or blocks of a stage are finished, with the student as it is then.
using PartDone = std::function<void(std::int64_t parts)>;

}  // namespace zsq::pipeline
