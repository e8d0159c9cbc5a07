// SPDX-License-Identifier: Apache-2.0
// Which tensors follow from which, value by value, and which follow from no image.
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// Acts on each value alone: ReLU, sigmoid, ...
bool is_function(const models::Node& node);

// A parameter, or the quantizer of one.
bool is_constant(const models::Graph& graph, models::NodeId id);

// Index = NodeId: the tensor that this one is a function of, value by value; itself at last.
std::vector<models::NodeId> find_sources(const models::Graph& graph);

// Those that read a tensor, in order, quantizers passed through.
std::vector<models::NodeId> readers_of(const models::Graph& graph,
                                       const std::vector<std::vector<models::NodeId>>& consumers,
                                       models::NodeId id);

// A constant as a distribution (quant/data_free/distribution.h): the same value with certainty.
at::Tensor constant_rows(const at::Tensor& value);

}  // namespace zsq::quant
