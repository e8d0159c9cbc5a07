// SPDX-License-Identifier: Apache-2.0
// Ranges of values instead of ranges by statistics, where the statistics are those of procedural
// images anyway. Neither suits every network (docs/log/without_batchnorm.md): the held-out images
// decide.
#include <algorithm>
#include <utility>

#include "pipeline/run/stage.h"
#include "pipeline/run/stages/calibrate.h"

namespace zsq::pipeline {
namespace {

// Each costs a forward pass of the float network and a histogram of every tensor.
constexpr std::int64_t kImages = 64;
constexpr ActivationRange kRule = ActivationRange::mse;

bool can_be_tried(const Recipe& recipe, const models::Model& network) {
  return network.statistics_of_images && recipe.process.agreement_images > 0 &&
         recipe.quantize.activations.range == ActivationRange::bn_statistics;
}

bool follows_first_calibration(const Recipe& recipe, const models::Model& network) {
  return can_be_tried(recipe, network) && kFirstCalibration.applies(recipe, network);
}

bool follows_calibration(const Recipe& recipe, const models::Model& network) {
  return can_be_tried(recipe, network) && kCalibration.applies(recipe, network);
}

std::string rule_in_words(const Recipe&) {
  return std::string(enum_name(kRule)) + " ranges of values";
}

void use_rule(QuantOptions& options) { options.activations.range = kRule; }

void calibrate_by_rule(StageContext& context, quant::Student& student, RunState&, const PartDone&) {
  auto& images = student.options.activations.calibration_images;
  const auto all = std::exchange(images, std::min(images, kImages));
  calibrate(context.run, student);
  images = all;
}

}  // namespace

const StageKind kFirstValueRanges{.name = rule_in_words,
                                  .applies = follows_first_calibration,
                                  .run = calibrate_by_rule,
                                  .trial = use_rule};
const StageKind kValueRanges{.name = rule_in_words,
                             .applies = follows_calibration,
                             .run = calibrate_by_rule,
                             .trial = use_rule};

}  // namespace zsq::pipeline
