// SPDX-License-Identifier: Apache-2.0
// What a stage of a run is: one file in pipeline/run/stages/, and one row of stage_kinds(). A stage
// makes the student closer to the float network; what comes after the last of them, files and
// evaluation, is in pipeline/run/finish.h.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/run/learning_images.h"
#include "pipeline/run/memory_plan.h"
#include "pipeline/run/pace.h"
#include "pipeline/run/state.h"
#include "quant/rounding/registry.h"
#include "train/report.h"

namespace zsq::pipeline {

// What the stages of one run share.
struct StageContext {
  const Run& run;
  std::optional<train::TrainReport>& trained;  // what fine-tuning reports
  Pace pace = {};           // unknown, 0, where no stage of the run estimates anything
  LearningImages learning;  // that they round, correct, reconstruct and learn from
};

// Called when `parts` layers or blocks of a stage are finished, with the student as it is then.
using PartDone = std::function<void(std::int64_t parts)>;

struct StageSeconds {
  double least = 0, estimate = 0;  // the least that is worth it, and as configured
};

// A row of stage_kinds(). `recipe` and `network` decide; nothing here depends on the machine but
// seconds.
struct StageKind {
  // In messages and in the report.
  std::string (*name)(const Recipe& recipe);
  bool (*applies)(const Recipe& recipe, const models::Model& network);
  // Estimated from the time that the float network takes for an image; null: too little to plan.
  StageSeconds (*seconds)(StageContext& context) = nullptr;
  // Null: no more than measuring needs.
  std::vector<MemoryNeed> (*memory)(const NetworkSizes& network, Recipe& recipe) = nullptr;
  void (*run)(StageContext& context, quant::Student& student, RunState& state,
              const PartDone& done) = nullptr;
  bool needed = false;  // kept whether it helps or not
  // Options that the student has from this stage on: kept only if the stage helps, whether other
  // stages of the recipe are undone or not.
  void (*trial)(QuantOptions& options) = nullptr;
  // Undone if the KL on one kind of held-out images rises, even if the mean over the kinds falls:
  // for what follows gradients for many steps, and so comes to fit the images that it learns from.
  bool learns = false;
  // Of the time that is left, for a stage that is often undone and has others after it: a run that
  // plans itself leaves it out if it needs more.
  double most_share = 1;
  // If it does not help and is followed by this stage, that one goes on with its result, and both
  // are kept or undone together. The second one has no parts: a run that is stopped in it goes on
  // with the first.
  const StageKind* judged_with = nullptr;
};

// All there are, in the order in which a run has them.
std::span<const StageKind* const> stage_kinds();
// Those of a run.
std::vector<const StageKind*> stage_kinds_of(const Recipe& recipe, const models::Model& network);

// Of channel correction, for each image, in the float network's forward passes.
constexpr double kCorrectionPassesPerImage = 10;

extern const StageKind kFirstCalibration, kFirstValueRanges, kRounding, kCalibration, kValueRanges,
    kChannelCorrection, kReconstruction, kFineTuning;

// Whether weights are rounded by what layers read of images. A run that plans itself does so even
// where its recipe names another rounding.
bool rounds_on_images(const Recipe& recipe);
const quant::RoundingMethod& rounding_of(const Recipe& recipe);

}  // namespace zsq::pipeline
