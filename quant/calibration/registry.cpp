// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/registry.h"

#include <array>
#include <string>

#include "core/error.h"
#include "core/registry.h"
#include "quant/calibration/entropy.h"
#include "quant/calibration/ranges.h"
#include "quant/calibration/weight_grid.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

constexpr std::array kWeightRules{
    WeightRangeRule{WeightRange::min_max, min_max_grid},
    WeightRangeRule{WeightRange::mse, mse_grid},
};

constexpr std::array kActivationRules{
    ActivationRangeRule{ActivationRange::bn_statistics, nullptr},
    ActivationRangeRule{ActivationRange::ema, moving_average_observer},
    ActivationRangeRule{ActivationRange::min_max, min_max_observer},
    ActivationRangeRule{ActivationRange::percentile, percentile_observer},
    ActivationRangeRule{ActivationRange::mse, mse_observer},
    ActivationRangeRule{ActivationRange::entropy, entropy_observer},
};

constexpr auto kFile = "quant/calibration/registry.cpp";

}  // namespace

std::span<const WeightRangeRule> weight_range_rules() { return kWeightRules; }

std::span<const ActivationRangeRule> activation_range_rules() { return kActivationRules; }

std::unique_ptr<RangeObserver> range_observer(const ActivationOptions& options,
                                              const QuantizerSpec& spec) {
  const auto make = row_of(kActivationRules, options.range, kFile).observer;
  if (!make)
    throw Error(ErrorCode::internal, "the range rule " + std::string(enum_name(options.range)) +
                                         " needs no images and has no observer");
  return make(options, spec);
}

cuda_kernels::Grid weight_grid(const at::Tensor& weight, const QuantizerSpec& spec,
                               bool per_channel, WeightRange rule) {
  require_uniform(spec.format, "the range rule " + std::string(enum_name(rule)));
  const auto values = spec.pair_bound ? to_pairs(weight.detach()).transpose(0, per_channel ? 0 : 1)
                                      : weight.detach();
  const auto rows = values.reshape({per_channel ? weight.size(0) : 1, -1}).contiguous();
  auto grid = row_of(kWeightRules, rule, kFile).grids(rows, spec);
  return per_channel ? grid : cuda_kernels::Grid{grid.scale.squeeze(0), grid.zero_point.squeeze(0)};
}

}  // namespace zsq::quant
