// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/grid.h"

#include <algorithm>

namespace zsq::exporters::tflite {
namespace {

constexpr std::int64_t kLowest = -128, kHighest = 127;

// Operators beside the one that computes the codes.
int extra_operators(const Grid& grid) {
  if (!why_not_int8(grid).empty()) return 3;
  return (grid.limit_below && !grid.relu_limits_below() ? 1 : 0) + (grid.limit_above ? 1 : 0);
}

TensorId code(Builder& builder, std::int64_t value, const Kind& kind, const std::string& name) {
  return builder.constant(name,
                          formats::Array::from<std::int8_t>(formats::DType::i8, {1},
                                                            {{static_cast<std::int8_t>(value)}}),
                          kind);
}

}  // namespace

Grid shifted_grid(float scale, std::int64_t zero_point, const CodeBounds& bounds,
                  std::int64_t shift) {
  Grid grid{scale, zero_point + shift, shift, bounds.lowest + shift, bounds.highest + shift};
  // An end that no value reaches may lie beyond int8.
  if (!bounds.reached_below) grid.lowest = std::max(grid.lowest, kLowest);
  if (!bounds.reached_above) grid.highest = std::min(grid.highest, kHighest);
  grid.limit_below = bounds.reached_below && grid.lowest > kLowest;
  grid.limit_above = bounds.reached_above && grid.highest < kHighest;
  return grid;
}

Grid choose_grid(float scale, std::int64_t zero_point, const CodeBounds& bounds) {
  const auto with = [&](std::int64_t shift) {
    return shifted_grid(scale, zero_point, bounds, shift);
  };
  const Grid from_the_lowest = with(kLowest - bounds.lowest);
  const Grid to_the_highest = with(kHighest - bounds.highest);
  return extra_operators(to_the_highest) < extra_operators(from_the_lowest) ? to_the_highest
                                                                            : from_the_lowest;
}

std::string why_not_int8(const Grid& grid) {
  if (grid.zero_point < kLowest || grid.zero_point > kHighest)
    return "its zero point is beyond int8";
  if (grid.lowest < kLowest || grid.highest > kHighest) return "it has more codes than int8";
  return "";
}

Activation fused(const Grid& grid) {
  return grid.relu_limits_below() ? Activation::RELU : Activation::NONE;
}

TensorId limit(Builder& builder, TensorId codes, const Grid& grid, bool after_fused,
               const std::string& name) {
  const Kind kind = grid.kind();
  const Sizes shape = builder.shape(codes);
  const auto with_bound = [&](BuiltinOperator op, std::int64_t bound, const std::string& suffix) {
    return builder.node(op, options_of(MaximumMinimumOptionsT{}),
                        {codes, code(builder, bound, kind, name + suffix)}, name + ".limited",
                        shape, kind);
  };
  if (grid.relu_limits_below()) {
    if (!after_fused)
      codes = builder.node(BuiltinOperator::RELU, {}, {codes}, name + ".limited", shape, kind);
  } else if (grid.limit_below) {
    codes = with_bound(BuiltinOperator::MAXIMUM, grid.lowest, ".lowest");
  }
  if (grid.limit_above) codes = with_bound(BuiltinOperator::MINIMUM, grid.highest, ".highest");
  return codes;
}

TensorId requantize(Builder& builder, TensorId codes, const Grid& grid, const std::string& name) {
  const Kind& from = builder.kind(codes);
  const TensorId zero = code(builder, from.zero_point[0], from, name + ".zero");
  AddOptionsT options;
  options.fused_activation_function = fused(grid);
  const TensorId sum = builder.node(BuiltinOperator::ADD, options_of(options), {codes, zero}, name,
                                    builder.shape(codes), grid.kind());
  return limit(builder, sum, grid, true, name);
}

}  // namespace zsq::exporters::tflite
