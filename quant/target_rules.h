// SPDX-License-Identifier: Apache-2.0
// How a runtime executes a quantized network: one struct per execution target. Placement reads it
// before training, the exporter writes what it allows, and the report says by it how layers run.
// Sources: docs/formats.md and tests/exporters, where the runtime itself confirms each rule.
#pragma once
#include <string_view>
#include <vector>

#include "models/graph.h"
#include "quant/options.h"

namespace zsq::quant {

enum class Execution {
  floating,
  integer,       // if its inputs are quantized
  pass_through,  // values stay as they are: on codes if the same grid is on both sides, so that a
                 // quantizer is repeated after it
};

struct OperatorRule {
  std::string_view op;  // models::op_name
  Execution execution = Execution::floating;
  bool quantized_output = false;  // float if a reader of its result is no quantizer
};

struct WeightRule {
  bool is_signed = true;
  // From so many bits on, weights are symmetric. With fewer, the differences q - z of an asymmetric
  // grid fit into 8 bits too, so that no file holds a zero point.
  std::int64_t symmetric_bits = 8;
  // A layer whose weights keep zero points, as can be asked for.
  Execution with_zero_points = Execution::floating;
  std::string_view cost_of_zero_points;  // measured
  // Uniform grids of so many bits and fewer are stored in a type of 4 bits, which is computed in
  // float.
  std::int64_t four_bit_type = 0;
  // Biases are floats, with which a linear layer runs in float.
  bool float_biases = false;
  // Unsigned codes of activations times signed weights: on x86 processors without VNNI the products
  // of two neighbours are added in 16 bits and the sum saturates (vpmaddubsw). Not so in a
  // depthwise convolution.
  bool saturating_pairs = false;
};

struct ActivationRule {
  // From so many bits on, codes are signed with zero point 0. With fewer, the differences q - z fit
  // into 8 bits whatever the zero point is.
  std::int64_t symmetric_bits = 9;
  // Signed codes of 8 bits end at -127 instead of -128.
  bool without_lowest = false;
};

struct TargetRules {
  std::string_view name;
  WeightRule weights;
  ActivationRule activations;
  std::vector<OperatorRule> operators;  // the others run in float
  bool hard_swish_is_product = false;   // x * HardSigmoid(x), quantized in between, is faster
  bool layers_alone = false;  // operators without weights read the float tensor, not its codes

  const OperatorRule& of(const models::Node& node) const;
};
const TargetRules& target_rules(Target target);

bool is_pass_through(const TargetRules& rules, const models::Node& node);

// Whether weights of so many bits are on a symmetric grid.
bool symmetric_weights(const QuantOptions& options, std::int64_t num_bits);
// The same of activations.
bool symmetric_activations(const QuantOptions& options, std::int64_t num_bits);

}  // namespace zsq::quant
