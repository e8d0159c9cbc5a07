// SPDX-License-Identifier: Apache-2.0
// Bits of each layer under the budget of recipe.mixed.
#pragma once
#include "pipeline/results.h"
#include "quant/bit_allocation/sensitivity.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Of the layers of `teacher`, the network of `source` after its rewrites (pipeline/run/rewrite.h),
// on images distilled from the latter (pipeline/images/distilled.h).
std::vector<quant::LayerSensitivity> measure_sensitivity(const models::Model& teacher,
                                                         const models::Model& source,
                                                         const std::string& sha256,
                                                         const Recipe& recipe, bool inputs,
                                                         Observer& observer);

// Weights, and for target_bops inputs, get the bits from mixed.min_bits to mixed.max_bits that make
// the sum of sensitivities least (quant/bit_allocation/allocate_bits.h) under the budget
// (pipeline/run/bit_budget.h, also for errors). First and last layer keep first_last_bits, and for
// target_size and target_cost inputs keep theirs. Fills recipe.quantize.*.layer_bits and takes the
// target out of recipe.mixed, so that the recipe repeats the result.
MixedResult choose_bits(const models::Model& teacher, const models::Model& source,
                        const std::string& sha256, Recipe& recipe, Observer& observer);

}  // namespace zsq::pipeline
