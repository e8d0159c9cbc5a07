// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/open_size.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <algorithm>

namespace zsq::models::onnx {
namespace {

template <class Pool>
std::vector<std::int64_t> window(const Pool& pool) {
  std::vector<std::int64_t> all(pool.kernel.begin(), pool.kernel.end());
  all.insert(all.end(), pool.pads.begin(), pool.pads.end());
  return all;
}

// The attributes that hold what an importer calculates from the size of the image.
std::vector<std::int64_t> sizes_in(const Node& node) {
  if (const auto* op = get_if<Reshape>(node)) return op->shape;
  if (const auto* op = get_if<Expand>(node)) return op->shape;
  if (const auto* op = get_if<Slice>(node)) return {op->axis, op->start, op->end, op->step};
  if (const auto* op = get_if<Interpolate>(node)) {  // exporters write scales
    if (op->scale[0] > 0 && op->scale[1] > 0) return {};
    return {op->size[0], op->size[1]};
  }
  if (const auto* op = get_if<MaxPool>(node)) return window(*op);
  if (const auto* op = get_if<AvgPool>(node)) return window(*op);
  if (const auto* op = get_if<Conv2d>(node)) return {op->pads.begin(), op->pads.end()};
  if (const auto* op = get_if<Pad>(node)) {
    auto all = op->before;
    all.insert(all.end(), op->after.begin(), op->after.end());
    return all;
  }
  return {};
}

// What joins the outputs to one row is not in the file.
bool flattens_an_output(const Graph& graph, NodeId id) {
  if (graph.signature.kind.outputs().empty() || !is<Flatten>(graph[id])) return false;
  return id == graph.output ||
         std::ranges::find(graph[graph.output].inputs, id) != graph[graph.output].inputs.end();
}

bool same_node(const Graph& a, const Graph& b, NodeId id) {
  const Node &x = a[id], &y = b[id];
  return x.op.index() == y.op.index() && x.inputs == y.inputs && x.params == y.params &&
         (flattens_an_output(a, id) || sizes_in(x) == sizes_in(y));
}

}  // namespace

bool is_same_at_any_size(const Model& a, const Model& b) {
  const auto& names = a.parameters.names();
  if (a.graph.signature.tail || a.graph.nodes.size() != b.graph.nodes.size() ||
      names != b.parameters.names())
    return false;
  for (std::size_t i = 0; i < a.graph.nodes.size(); ++i)
    if (!same_node(a.graph, b.graph, static_cast<NodeId>(i))) return false;
  return std::ranges::all_of(names, [&](const std::string& name) {
    const auto &x = a.parameters.at(name), &y = b.parameters.at(name);
    return x.sizes() == y.sizes() && at::equal(x, y);
  });
}

}  // namespace zsq::models::onnx
