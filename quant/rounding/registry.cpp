// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/registry.h"

#include <array>

#include "core/registry.h"
#include "quant/rounding/adaround.h"
#include "quant/rounding/gptq.h"
#include "quant/rounding/round_to_levels.h"
#include "quant/rounding/squant.h"

namespace zsq::quant {
namespace {

// Quantizers round to uniform grids themselves.
void round_to_nearest(Student& student) {
  round_weights_to_levels(student, /*cancel_errors=*/false);
}

// Passes: measured on ResNet-20, ResNet-18 and EfficientNet-Lite0 (docs/performance.md).
constexpr std::array kMethods{
    RoundingMethod{
        .name = WeightRounding::nearest, .title = "nearest rounding", .round = round_to_nearest},
    RoundingMethod{.name = WeightRounding::squant,
                   .title = "SQuant rounding",
                   .round = round_weights_by_squant},
    RoundingMethod{.name = WeightRounding::gptq,
                   .title = "GPTQ-style rounding",
                   .round = round_weights_by_squant,
                   .round_layer = round_layer_by_gptq,
                   .passes_per_image = 36},
    RoundingMethod{.name = WeightRounding::adaround,
                   .title = "AdaRound",
                   .round = round_to_nearest,
                   .round_layer = round_layer_by_adaround,
                   .passes_per_image = 36},
};

}  // namespace

std::span<const RoundingMethod> rounding_methods() { return kMethods; }

const RoundingMethod& rounding_method(WeightRounding name) {
  return row_of(kMethods, name, "quant/rounding/registry.cpp");
}

}  // namespace zsq::quant
