// SPDX-License-Identifier: Apache-2.0
// Networks of signals [N, C, L] (Signature::one_dimensional). Their layers act on maps [N, C, 1,
// L], and what the file sees is a Reshape of one. What follows acts on the map as well, and the
// Reshape comes after it, so that a convolution, its BatchNorm and its function stand beside each
// other.
#pragma once
#include <optional>

#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Appends a node whose inputs are such Reshapes on the maps before them, and gives what stands for
// the node; two Reshapes in a row are one, or none. Nothing: the node acts on something else.
std::optional<NodeId> append_on_maps(Call& call, const std::string& name, const Op& op,
                                     const std::vector<NodeId>& inputs,
                                     const std::map<std::string, std::string>& params);

// Converts `node`, which is the call's own with the attributes that it has on a map [N, C, 1, L],
// and binds what it gives as [N, C, L] again. `stand_ins`: as of Call::with().
void act_on_map(Call& call, const proto::Node& node, NodeId x,
                std::map<std::size_t, Value> stand_ins);
void set_attribute(proto::Node& node, const std::string& name,
                   decltype(proto::Attribute::value) value);

}  // namespace zsq::models::onnx
