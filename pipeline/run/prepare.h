// SPDX-License-Identifier: Apache-2.0
// The beginning of a run, and what it finds: all that stages and files are made from.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "eval/evaluate.h"
#include "pipeline/images/calibration_set.h"
#include "pipeline/images/held_out.h"
#include "pipeline/quantize.h"
#include "pipeline/run/clock.h"
#include "pipeline/session/output_folder.h"
#include "pipeline/session/preprocessing.h"
#include "train/images/image_bank.h"
#include "train/images/system_noise.h"

namespace zsq::pipeline {

// Whether a stage that does not help is undone; the published settings keep all of theirs.
bool undoes_stages(const Recipe& recipe);

struct Run {
  Recipe recipe;
  OutputFolder output;
  Observer& observer;
  RunClock clock;
  std::string sha256 = {};     // of the model's file
  models::Model source = {};   // the file's network, which makes images and is measured
  models::Model teacher = {};  // the same function, rewritten (pipeline/run/rewrite.h)
  PixelKnowledge pixels = {};
  std::vector<std::string> notes = {};  // of the model's file, for the report
  double added_macs = 0;                // of copies of channels, as a share of the network's
  double loading = 0;                   // seconds that reading the model took
  std::unique_ptr<eval::ImageSource> real_images = {};  // to measure with; null: none
  bool has_masks = false;                           // they have masks, which fit the network's map
  BankSplit bank = {};                              // undefined: no bank
  std::optional<train::BankDraws> bank_draws = {};  // of each batch of the student
  std::optional<train::SystemNoise> noise = {};     // on the student's images
  std::vector<HeldOutImages> held_out = {};
  // Of the generator's images (train::TrainJob); may be empty.
  std::function<void(std::int64_t iteration, const at::Tensor& images)> on_images = {};

  std::uint64_t seed() const { return static_cast<std::uint64_t>(recipe.process.seed); }
  void say(const std::string& message) const { observer.on_message(LogLevel::info, message); }
};

// Reads the model, the bank and where real images are; opens the output folder. What is wrong with
// the input shows here, before anything takes time.
Run prepare(const std::filesystem::path& model, const QuantizeOptions& options,
            const std::filesystem::path& output, Observer& observer);

}  // namespace zsq::pipeline
