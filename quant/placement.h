// SPDX-License-Identifier: Apache-2.0
// Where quantizers go, and at how many bits: decided on the float graph before it is rewritten.
#pragma once
#include <functional>
#include <set>
#include <vector>

#include "quant/target_rules.h"

namespace zsq::quant {

inline bool is_layer(const models::Node& node) {
  return models::is<models::Conv2d>(node) || models::is<models::Linear>(node);
}

// Operators that no target runs in integers: float islands between quantized tensors.
bool is_float_island(const models::Node& node);

// Index = NodeId: these, what between them only adds, multiplies, averages or moves, and averages
// that nothing else reads. No code lies in there: the variance of a normalisation, rounded to the
// code of zero, would become its divisor.
std::vector<bool> float_parts(const models::Graph& graph, const TargetRules& rules);

// Index = NodeId: a layer with no other layer before it, with none but such before it, with none
// after it.
struct Ends {
  std::vector<bool> first, second, last;
};
Ends find_ends(const models::Graph& graph);

constexpr std::int64_t kFloatInput = -1;

// Index of the vectors = NodeId of the float graph.
struct Placement {
  // Bits of the quantizers after a node, widest first, each fed by the one before it.
  std::vector<std::set<std::int64_t, std::greater<>>> bits;
  // Bits that a node takes its inputs at; 0: the widest there is; kFloatInput: before quantizers.
  std::vector<std::int64_t> input_bits;
  std::vector<std::int64_t> weight_bits;  // 0 if the node is no layer
};

// paper: one quantizer after each Clip that starts at 0. deploy: every tensor that an integer
// operator or a layer reads, except where an operator disappears into its neighbour (a BatchNorm
// into the layer before it, a Clip into the quantizer after it), between float islands, and for the
// constants of these.
Placement place(const models::Graph& graph, const QuantOptions& options);

}  // namespace zsq::quant
