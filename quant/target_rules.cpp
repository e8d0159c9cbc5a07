// SPDX-License-Identifier: Apache-2.0
#include "quant/target_rules.h"

#include <algorithm>
#include <array>

namespace zsq::quant {
namespace {

TargetRules onnxruntime_rules() {
  TargetRules rules;
  rules.name = "onnxruntime";
  rules.weights.with_zero_points = Execution::integer;
  rules.weights.cost_of_zero_points = "EfficientNet-Lite0 takes 20 times as long with them";
  rules.weights.saturating_pairs = true;
  constexpr auto integer = Execution::integer, pass_through = Execution::pass_through;
  rules.operators = {{"Conv2d", integer, true},        {"Linear", integer, false},
                     {"Add", integer, true},           {"Mul", integer, true},
                     {"Concat", integer, true},        {"AvgPool", integer, true},
                     {"GlobalAvgPool", integer, true}, {"Sigmoid", integer, true},
                     {"LeakyRelu", integer, true},     {"HardSigmoid", integer, true},
                     {"MaxPool", pass_through, true},  {"Flatten", pass_through, true},
                     {"Reshape", pass_through, true},  {"Transpose", pass_through, true},
                     {"Slice", pass_through, true},    {"Pad", pass_through, true},
                     {"Expand", pass_through, true},   {"Resize", pass_through, true}};
  rules.hard_swish_is_product = true;
  return rules;
}

void in_float(TargetRules& rules, std::string_view op) {
  std::erase_if(rules.operators, [&](const OperatorRule& rule) { return rule.op == op; });
}

// Without the sums of codes that onnxruntime runs: a HardSigmoid is one in float. Layers may end in
// float, but no weight has a zero point.
TargetRules openvino_rules() {
  TargetRules rules = onnxruntime_rules();
  rules.name = "openvino";
  rules.weights.with_zero_points = Execution::floating;
  in_float(rules, "HardSigmoid");
  for (OperatorRule& rule : rules.operators)
    if (rule.op == "Conv2d" || rule.op == "Linear") rule.quantized_output = false;
  return rules;
}

// NVIDIA, "Working with Quantized Types": symmetric quantization alone.
TargetRules tensorrt_rules() {
  TargetRules rules = openvino_rules();
  rules.name = "tensorrt";
  rules.weights.saturating_pairs = false;  // activations are signed
  rules.activations.symmetric_bits = 8;
  return rules;
}

// No single runtime: as onnxruntime runs these files.
TargetRules generic_rules() {
  TargetRules rules = onnxruntime_rules();
  rules.name = "generic";
  rules.weights.four_bit_type = 4;
  in_float(rules, "HardSigmoid");
  return rules;
}

TargetRules qcdq_rules() {
  TargetRules rules = onnxruntime_rules();
  rules.name = "qcdq";
  rules.weights.float_biases = true;
  in_float(rules, "HardSigmoid");
  return rules;
}

// LiteRT's int8 operators give codes, so that a layer whose result stays float is one in float.
// LOGISTIC has a fixed grid of its result, and LEAKY_RELU multiplies with 8 fractional bits.
TargetRules tflite_rules() {
  TargetRules rules = onnxruntime_rules();
  rules.name = "tflite";
  rules.weights.saturating_pairs = false;  // XNNPACK widens codes to 16 bits before it multiplies
  rules.weights.with_zero_points = Execution::floating;
  in_float(rules, "Sigmoid");
  in_float(rules, "LeakyRelu");
  for (OperatorRule& rule : rules.operators)
    if (rule.op == "Linear") rule.quantized_output = true;
  return rules;
}

// ncnn's convolutions and inner products quantize their own input to -127..127 with a scale alone,
// and give floats; all other layers are float.
TargetRules ncnn_rules() {
  TargetRules rules;
  rules.name = "ncnn";
  rules.activations = {.symmetric_bits = 8, .without_lowest = true};
  rules.operators = {{"Conv2d", Execution::integer}, {"Linear", Execution::integer}};
  rules.layers_alone = true;
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
  static const std::array rules{onnxruntime_rules(), openvino_rules(), tensorrt_rules(),
                                generic_rules(),     qcdq_rules(),     tflite_rules(),
                                ncnn_rules()};
  return *std::ranges::find(rules, enum_name(target), &TargetRules::name);
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

bool symmetric_activations(const QuantOptions& options, std::int64_t num_bits) {
  return options.mode == Mode::deploy &&
         num_bits >= target_rules(options.target).activations.symmetric_bits;
}

}  // namespace zsq::quant
