// SPDX-License-Identifier: Apache-2.0
#include "quant/target_rules.h"

#include <algorithm>

#include "core/error.h"

namespace zsq::quant {
namespace {

TargetRules onnxruntime_rules() {
  TargetRules rules;
  rules.name = "onnxruntime";
  rules.weights.with_zero_points = Execution::integer;
  rules.weights.cost_of_zero_points = "EfficientNet-Lite0 takes 20 times as long with them";
  constexpr auto integer = Execution::integer, pass_through = Execution::pass_through;
  rules.operators = {{"Conv2d", integer, true},        {"Linear", integer, false},
                     {"Add", integer, true},           {"Mul", integer, true},
                     {"Concat", integer, true},        {"AvgPool", integer, true},
                     {"GlobalAvgPool", integer, true}, {"Sigmoid", integer, true},
                     {"LeakyRelu", integer, true},     {"HardSigmoid", integer, true},
                     {"MaxPool", pass_through, true},  {"Flatten", pass_through, true},
                     {"Reshape", pass_through, true},  {"Transpose", pass_through, true},
                     {"Slice", pass_through, true},    {"Pad", pass_through, true},
                     {"Resize", pass_through, true}};
  rules.hard_swish_is_product = true;
  return rules;
}

}  // namespace

const OperatorRule& TargetRules::of(const models::Node& node) const {
  static const OperatorRule in_float;
  const auto found = std::find_if(operators.begin(), operators.end(), [&](const OperatorRule& o) {
    return o.op == models::op_name(node.op);
  });
  return found == operators.end() ? in_float : *found;
}

const TargetRules& target_rules(Target target) {
  static const TargetRules onnxruntime = onnxruntime_rules();
  switch (target) {
    case Target::onnxruntime:
      return onnxruntime;
  }
  throw Error(ErrorCode::internal, "no rules for this target");
}

bool is_pass_through(const TargetRules& rules, const models::Node& node) {
  return rules.of(node).execution == Execution::pass_through;
}

bool symmetric_weights(const QuantOptions& options, std::int64_t num_bits) {
  if (options.weights.symmetric != Symmetry::automatic)
    return options.weights.symmetric == Symmetry::yes;
  return options.mode == Mode::deploy &&
         num_bits >= target_rules(options.target).weights.symmetric_bits;
}

}  // namespace zsq::quant
