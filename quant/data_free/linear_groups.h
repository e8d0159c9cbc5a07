// SPDX-License-Identifier: Apache-2.0
// Tensors without an activation between the layer that makes them and the layers that read them:
// the linear bottlenecks of inverted residuals.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "models/graph.h"

namespace zsq::quant {

// Outputs of BatchNorm layers and the additions that join them. All of these tensors can be
// transformed alike, because layers that can undo it are all that reads them.
struct LinearGroup {
  std::vector<models::NodeId> tensors;  // norms and additions
  std::vector<models::NodeId> norms;    // gamma and beta are their own
  std::vector<models::NodeId>
      layers;                        // convolutions, dense or depthwise, with weights of their own
  std::vector<models::NodeId> read;  // layers[i] reads the tensor read[i]
};

// Parameters by name -> number of nodes that have them.
using ParameterUses = std::map<std::string, int>;
ParameterUses parameter_uses(const models::Graph& graph);
bool is_own(const models::Node& node, const char* role, const ParameterUses& uses);

// Gives a node a parameter of its own, named <node>.<role>.
void set_own(models::Model& model, models::NodeId node, const char* role, const at::Tensor& value);

bool is_depthwise(const models::Model& model, models::NodeId convolution);
// Whether the weights of what reads a tensor can undo a scaling of its channels.
bool can_undo_scaling(const models::Model& model, models::NodeId reader, const ParameterUses& uses);

// Without groups that nothing reads.
std::vector<LinearGroup> linear_groups(const models::Model& model);

// Mean and variance per channel, f32 [C], of a tensor of a group as its BatchNorm layers imply
// them: of independent summands.
struct ImpliedMoments {
  at::Tensor mean, variance;
};
ImpliedMoments implied_moments(const models::Model& model, models::NodeId tensor);

}  // namespace zsq::quant
