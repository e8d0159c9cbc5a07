// SPDX-License-Identifier: Apache-2.0
// The units of a network that are looked at one by one: where a tensor stands alone between what is
// before it and what is after it, the network can be cut.
#pragma once
#include "models/execute.h"

namespace zsq::models {

// All nodes on ways from `entry` (without it) to `exit` (with it). Every way from the network's
// input to its output goes through both.
struct Block {
  NodeId entry, exit;
  bool residual = false;  // ways part and meet again in an Add
};

// The blocks of a graph in order, each one's entry the exit of the one before; together they are
// the whole network, and each holds a layer (Conv2d or Linear):
//   - ways that part and meet again: a residual block, a unit with Concat, a whole dense block;
//   - a depthwise convolution with the pointwise ones around it and the gate (squeeze and excite)
//     between them, so that an inverted residual is one block with a shortcut and without;
//   - else a single layer.
// What follows and acts on each value alone (BatchNorm, Clip, ...) belongs to a block; what pools
// or reorders opens the next one. A graph without layers has no blocks.
std::vector<Block> find_blocks(const Graph& graph, const ParameterStore& parameters);

// Exits of the blocks whose value a student should share with its teacher: maps [N, C, H, W] of
// residual blocks, and the last one of each resolution.
std::vector<NodeId> feature_nodes(const Graph& graph, const ParameterStore& parameters);

// The nodes on ways from `entry` to `exit` as a graph of their own, with the constants that they
// read; names and parameters stay. Its input is the value of `entry`, of shape `entry_shape` with a
// batch of one; as_images() brings a value into the form that it takes. Error(internal) if
// something else than `entry` leads to `exit`.
Graph cut_out(const Graph& graph, NodeId entry, NodeId exit, const Shape& entry_shape);

// [N, C, H, W] as it is; any other shape as [N, values, 1, 1].
at::Tensor as_images(const at::Tensor& value);

}  // namespace zsq::models
