// SPDX-License-Identifier: Apache-2.0
// Operators of several tensors and constants with ONNX's broadcasting: shapes align at the right,
// and a dimension of 1 is repeated. The batch must stay the first dimension of the result.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

struct Operand {
  std::size_t input;
  NodeId node;          // an activation; -1: a constant
  at::Tensor constant;  // with the batch's dimension, if it has one, of 1
};

struct Operands {
  std::vector<Operand> all;  // activations before constants, each in their order
  // All activations are maps after a transposition to channels last. The nodes are those maps and
  // the constants are transposed alike, so that the result is a map as well.
  bool on_map = false;
};

// The inputs `wanted` (empty: all). Refused by name: a result whose batch is not its first
// dimension, and constants with a row of their own for each image. An activation of fewer
// dimensions is reshaped if the file fixes a batch of one; with another batch its images would meet
// another dimension.
// maps: on_map may become true.
Operands read_operands(Call& call, std::vector<std::size_t> wanted = {}, bool maps = true);

// A constant in `rank` dimensions, aligned at the right; a fixed batch of equal rows becomes one
// row. Refused: rows that differ.
at::Tensor without_batch_rows(const Call& call, const at::Tensor& constant, std::size_t rank);

NodeId node_of(Call& call, const Operand& operand);  // a Parameter node for a constant

// Appends `op` on the operands, two at a time from the left, and binds the result.
void emit_operands(Call& call, const Op& op, const Operands& operands);
// The same on nodes of operands.
void emit_on(Call& call, Op op, std::vector<NodeId> inputs, bool on_map);

// Appends an elementwise function of one activation and binds it.
void emit_function(Call& call, Op op, NodeId x);

}  // namespace zsq::models::onnx
