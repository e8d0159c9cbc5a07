// SPDX-License-Identifier: Apache-2.0
// The rules that find ranges. A new one: a function in a pair of files of its own, its name in
// quant/options.h, a row in registry.cpp.
#pragma once
#include <span>

#include "cuda_kernels/weight_range.h"
#include "quant/calibration/range_observers.h"

namespace zsq::quant {

// The grids of the rows of f32 [C, n].
struct WeightRangeRule {
  WeightRange name;
  cuda_kernels::Grid (*grids)(const at::Tensor& rows, const QuantizerSpec& spec);
};
std::span<const WeightRangeRule> weight_range_rules();

struct ActivationRangeRule {
  ActivationRange name;
  // Null: the rule needs no images, but what BatchNorm statistics imply.
  std::unique_ptr<RangeObserver> (*observer)(const ActivationOptions&, const QuantizerSpec&);
};
std::span<const ActivationRangeRule> activation_range_rules();

// By the rule of the options; Error(internal) if that needs no images.
std::unique_ptr<RangeObserver> range_observer(const ActivationOptions& options,
                                              const QuantizerSpec& spec);

}  // namespace zsq::quant
