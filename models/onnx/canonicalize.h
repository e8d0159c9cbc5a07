// SPDX-License-Identifier: Apache-2.0
// Different spellings of one network become one graph.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Where `x` is the output of a Pad node that only adds `value` around the map, the Pad's input, and
// its pads are added to `pads`; else `x`. The Pad is left without a reader.
NodeId absorb_pad(const Graph& graph, NodeId x, double value, Pads& pads);

// If one input of the Add is a Linear layer without bias that nothing else reads, and the other a
// constant that varies along the layer's outputs only (the last dimension), the constant becomes
// the bias.
bool absorb_linear_bias(Call& add);

// The map [N, C, H, W] of which `x` is the transposed form [N, H, W, C]; -1: it is something else.
NodeId map_before_channels_last(const Graph& graph, NodeId x);

// Appends a node on that map and its transposed form after it, and binds the latter: what acts on
// channels is written on either side of a Transpose, and is one operator here.
void emit_on_map(Call& call, const std::string& name, Op op, NodeId map,
                 std::map<std::string, std::string> params = {});

}  // namespace zsq::models::onnx
