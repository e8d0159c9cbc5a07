// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/signals.h"

#include <algorithm>
#include <variant>

namespace zsq::models::onnx {
namespace {

// Where a tensor [N, C, L] has its length, and where its map has it.
constexpr std::int64_t kLength = 2, kWidth = 3;

// What acts on each value alone, or on each channel, on several maps as on one.
template <class T>
constexpr bool kKeepsPlaces =
    std::is_same_v<T, BatchNorm> || std::is_same_v<T, Clip> || std::is_same_v<T, LeakyRelu> ||
    std::is_same_v<T, Sigmoid> || std::is_same_v<T, HardSigmoid> || std::is_same_v<T, HardSwish> ||
    std::is_same_v<T, Gelu> || std::is_same_v<T, Elementwise> || std::is_same_v<T, Add> ||
    std::is_same_v<T, Mul> || std::is_same_v<T, Binary>;

std::int64_t on_map(std::int64_t axis) { return axis == kLength ? kWidth : axis; }

// The same operator on maps; nothing where it is not known there.
struct OnMaps {
  template <class T>
  std::optional<Op> operator()(const T& op) const {
    if constexpr (kKeepsPlaces<T>) return op;
    return std::nullopt;
  }
  std::optional<Op> operator()(const Concat& op) const { return Concat{on_map(op.axis)}; }
  std::optional<Op> operator()(const Slice& op) const {
    return Slice{on_map(op.axis), op.start, op.end, op.step};
  }
  std::optional<Op> operator()(const Pad& op) const {
    Pad pad = op;
    for (auto* side : {&pad.before, &pad.after}) side->insert(side->begin() + kLength, 0);
    return pad;
  }
  std::optional<Op> operator()(const Reduce& op) const {
    if (op.axes != std::vector<std::int64_t>{kLength}) return std::nullopt;
    if (op.kind == ReduceKind::mean) return GlobalAvgPool{op.keepdims};
    return Reduce{op.kind, {kLength, kWidth}, op.keepdims};
  }
};

// The map of which a node is the signal; -1: it is something else.
NodeId map_of(const Call& call, const Graph& graph, NodeId id) {
  if (!is<Reshape>(graph[id])) return -1;
  const auto source = graph[id].inputs[0];
  const auto &signal = call.shape(id), &map = call.shape(source);
  const bool matches = signal.size() == 3 && map.size() == 4 && map[kLength] == 1 &&
                       signal[1] == map[1] && signal[kLength] == map[kWidth];
  return matches ? source : -1;
}

}  // namespace

std::optional<NodeId> append_on_maps(Call& call, const std::string& name, const Op& op,
                                     const std::vector<NodeId>& inputs,
                                     const std::map<std::string, std::string>& params) {
  const Graph& graph = call.model().graph;
  const bool reshapes = std::holds_alternative<Reshape>(op) || std::holds_alternative<Flatten>(op);
  if (reshapes && is<Reshape>(graph[inputs[0]])) {
    const auto source = graph[inputs[0]].inputs[0];
    const Node node{name, op, {source}, {}};
    if (infer_shape(node, {call.shape(source)}, call.model().parameters) == call.shape(source))
      return source;
    return call.append(name, op, {source});
  }
  std::vector<NodeId> maps;
  for (const auto input : inputs) maps.push_back(map_of(call, graph, input));
  if (maps.empty() || std::ranges::find(maps, NodeId{-1}) != maps.end()) return std::nullopt;
  const auto there = std::visit(OnMaps{}, op);
  if (!there) return std::nullopt;
  const auto y = call.append(name, *there, maps, params);
  Shape shape(call.shape(y).begin() + 1, call.shape(y).end());
  if (shape.size() < 3) return y;
  shape.erase(shape.begin() + 1);  // the height
  return call.part(Reshape{shape}, {y});
}

void act_on_map(Call& call, const proto::Node& node, NodeId x,
                std::map<std::size_t, Value> stand_ins) {
  const Shape shape = call.shape(x);
  stand_ins[0] = {call.part(Reshape{{shape[1], 1, shape[2]}}, {x}), {}};
  Call on_map = call.with(node, std::move(stand_ins));
  registry().at(node.op_type).convert(on_map);
  const auto y = call.result();
  call.bind({call.part(Reshape{{call.shape(y)[1], call.shape(y)[3]}}, {y}), {}});
}

void set_attribute(proto::Node& node, const std::string& name,
                   decltype(proto::Attribute::value) value) {
  std::erase_if(node.attributes, [&](const auto& one) { return one.name == name; });
  node.attributes.push_back({name, std::move(value)});
}

}  // namespace zsq::models::onnx
