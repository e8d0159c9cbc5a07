// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/broadcast.h"

#include <algorithm>
#include <numeric>

#include "models/onnx/canonicalize.h"

namespace zsq::models::onnx {
namespace {

constexpr const char* kAlongBatch = "the inputs would broadcast along the batch";

std::size_t rank_of(const Call& call, std::size_t input) {
  return call.is_constant(input) ? static_cast<std::size_t>(call.constant(input).dim())
                                 : call.shape(call.activation(input)).size();
}

// With dimensions of 1 after the batch.
NodeId raise(Call& call, NodeId x, std::size_t rank) {
  const auto& shape = call.shape(x);
  if (shape.size() == rank) return x;
  if (call.fixed_batch() != 1) {
    call.fail(std::string(kAlongBatch) + ": one has " + std::to_string(shape.size()) +
              " dimensions, the other " + std::to_string(rank));
  }
  std::vector<std::int64_t> dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin() + 1, shape.end());
  return call.append(call.unique_name(), Reshape{dims}, {x});
}

// [N, H, W, C] -> [N, C, H, W], aligned at the right.
at::Tensor channels_first(const at::Tensor& constant) {
  if (constant.numel() == 1) return constant;
  std::vector<std::int64_t> shape(4 - static_cast<std::size_t>(constant.dim()), 1);
  shape.insert(shape.end(), constant.sizes().begin(), constant.sizes().end());
  return constant.reshape(shape).permute({0, 3, 1, 2});
}

void move_to_maps(Call& call, Operands& operands, std::size_t rank) {
  const auto& graph = call.model().graph;
  operands.on_map = rank == 4;
  for (const auto& operand : operands.all) {
    if (operand.node >= 0 && map_before_channels_last(graph, operand.node) < 0)
      operands.on_map = false;
  }
  if (!operands.on_map) return;
  for (auto& operand : operands.all) {
    if (operand.node >= 0)
      operand.node = map_before_channels_last(graph, operand.node);
    else
      operand.constant = channels_first(operand.constant);
  }
}

}  // namespace

at::Tensor without_batch_rows(const Call& call, const at::Tensor& constant, std::size_t rank) {
  if (static_cast<std::size_t>(constant.dim()) < rank || constant.size(0) == 1) return constant;
  if (constant.size(0) != call.fixed_batch()) call.fail(kAlongBatch);
  const auto row = constant.slice(0, 0, 1);
  if (!row.expand_as(constant).equal(constant))
    call.fail("a constant has other values for each image of the batch");
  return row;
}

Operands read_operands(Call& call, std::vector<std::size_t> wanted, bool maps) {
  if (wanted.empty()) {
    wanted.resize(call.inputs());
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  if (wanted.empty()) call.fail("inputs were expected");
  std::size_t rank = 0;
  for (const auto input : wanted) rank = std::max(rank, rank_of(call, input));
  Operands operands;
  for (const bool constants : {false, true}) {
    for (const auto input : wanted) {
      if (call.is_constant(input) != constants) continue;
      if (constants)
        operands.all.push_back({input, -1, without_batch_rows(call, call.constant(input), rank)});
      else
        operands.all.push_back({input, raise(call, call.activation(input), rank), {}});
    }
  }
  if (maps) move_to_maps(call, operands, rank);
  return operands;
}

NodeId node_of(Call& call, const Operand& operand) {
  return operand.node >= 0 ? operand.node : call.operand(operand.input, operand.constant);
}

void emit_on(Call& call, Op op, std::vector<NodeId> inputs, bool on_map) {
  const auto y = call.append(call.unique_name(), std::move(op), std::move(inputs));
  if (!on_map) return call.bind({y, {}});
  call.bind({call.append(call.unique_name() + ".channels_last", Transpose{{0, 2, 3, 1}}, {y}), {}});
}

void emit_operands(Call& call, const Op& op, const Operands& operands) {
  const auto& all = operands.all;
  if (all.size() == 1) return call.bind(call.value(all[0].input));
  auto y = node_of(call, all[0]);
  for (std::size_t i = 1; i + 1 < all.size(); ++i)
    y = call.append(call.unique_name(), op, {y, node_of(call, all[i])});
  emit_on(call, op, {y, node_of(call, all.back())}, operands.on_map);
}

void emit_function(Call& call, Op op, NodeId x) {
  const auto map = map_before_channels_last(call.model().graph, x);
  emit_on(call, std::move(op), {map < 0 ? x : map}, map >= 0);
}

}  // namespace zsq::models::onnx
