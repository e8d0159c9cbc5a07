// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"

namespace zsq::pipeline {

std::span<const StageKind* const> stage_kinds() {
  static constexpr std::array kinds{&kFirstCalibration, &kFirstValueRanges, &kRounding,
                                    &kCalibration,      &kValueRanges,      &kChannelCorrection,
                                    &kReconstruction,   &kFineTuning};
  return kinds;
}

std::vector<const StageKind*> stage_kinds_of(const Recipe& recipe, const models::Model& network) {
  std::vector<const StageKind*> kinds;
  for (const StageKind* kind : stage_kinds())
    if (kind->applies(recipe, network)) kinds.push_back(kind);
  return kinds;
}

const quant::RoundingMethod& rounding_of(const Recipe& recipe) {
  const auto& method = quant::rounding_method(recipe.quantize.weights.rounding);
  return recipe.process.automatic && !method.needs_images()
             ? quant::rounding_method(WeightRounding::gptq)
             : method;
}

bool rounds_on_images(const Recipe& recipe) { return rounding_of(recipe).needs_images(); }

}  // namespace zsq::pipeline
