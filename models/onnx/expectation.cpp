// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/expectation.h"

namespace zsq::models::onnx {
namespace {

bool is_distribution(const Graph& graph, NodeId x) {
  while (is<Reshape>(graph[x]) || is<Transpose>(graph[x]) || is<Flatten>(graph[x]))
    x = graph[x].inputs[0];
  return is<Softmax>(graph[x]);
}

}  // namespace

bool emit_expectation(Call& call, NodeId x, const at::Tensor& weights, std::int64_t axis,
                      bool keepdims) {
  if (!is_distribution(call.model().graph, x)) return false;
  const auto terms = call.part(Mul{}, {x, call.operand(1, weights)});
  call.emit(Reduce{ReduceKind::sum, {axis}, keepdims}, {terms});
  return true;
}

}  // namespace zsq::models::onnx
