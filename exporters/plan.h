// SPDX-License-Identifier: Apache-2.0
// What becomes one with what when a student runs in integers, decided before anything is written.
#pragma once
#include "exporters/registry.h"
#include "models/execute.h"

namespace zsq::exporters {

struct Plan {
  std::vector<std::vector<models::NodeId>> consumers;
  // Index = NodeId: true where the node writes nothing and hands its input on. A BatchNorm folded
  // into the layer before it, a Clip folded into the clamp bounds of the quantizers after it, a
  // quantizer without a scale.
  std::vector<bool> absorbed;
  // A HardSigmoid that the target runs in integers: the sum alpha x + beta, whose codes end at 0
  // and 1 by the quantizers after it.
  std::vector<bool> saturates;
  std::vector<const quant::WeightSite*> site;  // index = NodeId of the layer; null: float weight
  std::vector<ExecutesAs> layers;              // one per convolution and linear layer

  // The last of the absorbed nodes that hand on what `id` computes, each to the next alone; `id`
  // itself if there is none.
  models::NodeId last_absorbed(const models::Graph& graph, models::NodeId id) const;
};

// Whether a weight fits into a type of 4 bits, with a zero point.
bool has_four_bits(const quant::QuantizerSpec& spec);

Plan make_plan(const quant::Student& student, const std::vector<quant::WeightSite>& sites);

// The node's activation quantizer where it has its scale, else null.
const quant::ActivationQuantizer* calibrated_quantizer(const quant::Student& student,
                                                       models::NodeId id);

// The grid of a calibrated quantizer.
struct ActivationGrid {
  float scale = 1;
  std::int64_t zero_point = 0;
};
ActivationGrid activation_grid(const quant::Student& student,
                               const quant::ActivationQuantizer& quantizer);

// A parameter, or the quantizer of a weight: written with the node that reads it.
bool is_weight(const models::Node& node);

// A layer's weight as the network has it, and its bias; undefined if it has none.
struct FloatLayer {
  at::Tensor weight, bias;
};
FloatLayer float_layer(const quant::Student& student, const models::Node& layer);

}  // namespace zsq::exporters
