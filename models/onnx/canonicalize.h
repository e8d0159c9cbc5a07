// SPDX-License-Identifier: Apache-2.0
// Different spellings of one network become one graph.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

// Where `x` is the output of a Pad node that only adds `value` around the map, the Pad's input, and
// its pads are added to `pads`; else `x`. The Pad is left without a reader.
NodeId absorb_pad(const Graph& graph, NodeId x, double value, Pads& pads);

// Where one input of the Add is a constant of one value per class, and the other a Linear layer
// without bias that nothing else reads, the constant becomes its bias.
bool absorb_linear_bias(Call& add);

// Without the nodes that the output does not depend on.
Graph drop_unused_nodes(const Graph& graph);

}  // namespace zsq::models::onnx
