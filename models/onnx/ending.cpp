// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ending.h"

#include <algorithm>
#include <cmath>

#include "models/normalized.h"

namespace zsq::models::onnx {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<Shape>& shapes) : graph_(graph), shapes_(shapes) {}

  // Back over nodes that only change the shape, while `wanted` of the nodes is not reached.
  NodeId before_shape_changes(NodeId id) const {
    while (changes_shape(id)) id = graph_[id].inputs[0];
    return id;
  }
  NodeId first_flat(NodeId id) const {
    while (shape(id).size() != 2 && changes_shape(id)) id = graph_[id].inputs[0];
    return id;
  }

  // Whether `axis` is the one dimension that is not 1.
  bool over_classes(NodeId x, std::int64_t axis) const {
    const auto& dims = shape(x);
    for (std::size_t i = 1; i < dims.size(); ++i)
      if (dims[i] != 1 && static_cast<std::int64_t>(i) != axis) return false;
    return true;
  }

 private:
  const Shape& shape(NodeId id) const { return shapes_[static_cast<std::size_t>(id)]; }

  bool changes_shape(NodeId id) const {
    const Node& node = graph_[id];
    if (is<Flatten>(node) || is<Reshape>(node)) return true;
    const auto* transpose = get_if<Transpose>(node);
    if (!transpose) return false;
    std::vector<std::int64_t> longer;  // where its dimensions that are not 1 come from
    for (const auto axis : transpose->perm)
      if (shape(node.inputs[0])[static_cast<std::size_t>(axis)] != 1) longer.push_back(axis);
    return std::is_sorted(longer.begin(), longer.end());
  }

  const Graph& graph_;
  const std::vector<Shape>& shapes_;
};

// The function that gives an output its range, before arithmetic with constants.
struct Finish {
  bool scaled = false, bounded = false;
  std::pair<std::size_t, int> function;  // the operator, and which Elementwise
  bool operator==(const Finish&) const = default;
};

// The input that is not a constant of an affine step; -1: the node is none.
NodeId before_affine_step(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const auto* two = get_if<Binary>(node);
  const bool arithmetic = is<Add>(node) || is<Mul>(node) ||
                          (two && (two->kind == BinaryKind::sub || two->kind == BinaryKind::div));
  if (!arithmetic) return -1;
  for (std::size_t i = 0; i < 2; ++i)
    if (is<Parameter>(graph[node.inputs[i]])) return node.inputs[1 - i];
  return -1;
}

bool is_bounded(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (const auto* clip = get_if<Clip>(node))
    return std::isfinite(clip->lo) && std::isfinite(clip->hi);
  if (const auto* op = get_if<Elementwise>(node)) {
    constexpr Function kBounded[]{Function::tanh, Function::softsign, Function::erf, Function::sin,
                                  Function::cos};
    return std::ranges::find(kBounded, op->function) != std::end(kBounded);
  }
  return is<Sigmoid>(node) || is<HardSigmoid>(node) || find_normalized(graph, id).has_value();
}

Finish finish_of(const Finder& finder, const Graph& graph, NodeId id) {
  Finish finish;
  for (bool more = true; more;) {
    id = finder.before_shape_changes(id);
    const auto inner = before_affine_step(graph, id);
    more = inner >= 0 || is<Slice>(graph[id]);
    finish.scaled |= inner >= 0;
    if (more) id = inner >= 0 ? inner : graph[id].inputs[0];
  }
  finish.bounded = is_bounded(graph, id);
  const auto* op = get_if<Elementwise>(graph[id]);
  const bool layer = is<Conv2d>(graph[id]) || is<Linear>(graph[id]);
  finish.function = {layer ? 0 : graph[id].op.index(), op ? static_cast<int>(op->function) : -1};
  return finish;
}

// Quantities in units of their own: what has a range by its function, and what joins such things
// or unlike ones.
bool has_units(const Finder& finder, const Graph& graph, NodeId last) {
  if (!is<Concat>(graph[last])) return finish_of(finder, graph, last).bounded;
  std::vector<Finish> parts;
  for (const auto input : graph[last].inputs) parts.push_back(finish_of(finder, graph, input));
  return std::ranges::any_of(
      parts, [&](const Finish& part) { return part.bounded || part != parts.front(); });
}

OutputKind kind_of_values(const Finder& finder, const Graph& graph, NodeId id,
                          std::int64_t classes) {
  const auto last = finder.before_shape_changes(id);
  const bool values = classes == 1 || is<BatchNorm>(graph[last]) || has_units(finder, graph, last);
  return values ? OutputKind::values : OutputKind::logits;
}

}  // namespace

Ending find_ending(const Graph& graph, const std::vector<Shape>& shapes,
                   const std::map<NodeId, LogSoftmaxPart>& log_softmaxes, NodeId output) {
  const Finder finder(graph, shapes);
  const auto last = finder.before_shape_changes(output);
  const Node& node = graph[last];
  const auto enter = [&](NodeId x, OutputFunction function, OutputKind kind) {
    return Ending{finder.first_flat(x), function, kind};
  };
  if (is<Sigmoid>(node)) return enter(node.inputs[0], OutputFunction::sigmoid, OutputKind::scores);
  if (const auto* softmax = get_if<Softmax>(node);
      softmax && finder.over_classes(node.inputs[0], softmax->axis))
    return enter(node.inputs[0], OutputFunction::softmax, OutputKind::logits);
  if (const auto found = log_softmaxes.find(last);
      found != log_softmaxes.end() && finder.over_classes(found->second.x, found->second.axis))
    return enter(found->second.x, OutputFunction::log_softmax, OutputKind::logits);
  if (const auto* function = get_if<Elementwise>(node);
      function && function->function == Function::log) {
    const Node& before = graph[finder.before_shape_changes(node.inputs[0])];
    if (const auto* softmax = get_if<Softmax>(before);
        softmax && finder.over_classes(before.inputs[0], softmax->axis))
      return enter(before.inputs[0], OutputFunction::log_softmax, OutputKind::logits);
  }
  std::int64_t classes = 1;
  for (const auto size : shapes[static_cast<std::size_t>(output)]) classes *= size;
  return {finder.first_flat(output), OutputFunction::none,
          kind_of_values(finder, graph, output, classes)};
}

bool is_row(const Shape& shape) {
  return std::ranges::count_if(shape, [](auto size) { return size != 1; }) <= 1;
}

DescribedOutput describe_output(const Graph& graph, const std::vector<Shape>& shapes,
                                const std::map<NodeId, LogSoftmaxPart>& log_softmaxes,
                                NodeId output, const std::string& name, bool alone) {
  const Shape& shape = shapes[static_cast<std::size_t>(output)];
  DescribedOutput found{output, {.name = name, .shape = {}}};
  if (shape.size() > 1) found.output.shape.assign(shape.begin() + 1, shape.end());
  const auto enter = [&](NodeId x, OutputFunction function, OutputKind kind, std::int64_t axis) {
    found.node = x;
    found.output.function = function;
    found.output.kind = kind;
    found.output.axis = axis;
    return found;
  };
  if (is_row(shape)) {
    const Ending ending = find_ending(graph, shapes, log_softmaxes, output);
    const auto classes = std::ranges::find_if(shape, [](auto size) { return size != 1; });
    const auto axis = classes == shape.end() ? 1 : classes - shape.begin();
    return enter(ending.node, ending.function, ending.kind, axis);
  }
  const Finder finder(graph, shapes);
  const Node& last = graph[finder.before_shape_changes(output)];
  if (is<Sigmoid>(last))
    return enter(last.inputs[0], OutputFunction::sigmoid, OutputKind::scores, 1);
  const auto* softmax = get_if<Softmax>(graph[output]);
  if (softmax && softmax->axis > 0)
    return enter(graph[output].inputs[0], OutputFunction::softmax, OutputKind::map, softmax->axis);
  if (const auto part = log_softmaxes.find(output);
      part != log_softmaxes.end() && part->second.axis > 0)
    return enter(part->second.x, OutputFunction::log_softmax, OutputKind::map, part->second.axis);
  const auto& image = graph.input_shape;
  const bool of_image_size = shape.size() == 4 && shape[2] == image[1] && shape[3] == image[2];
  if (alone && of_image_size && shape[1] > 1 && shape[1] != image[0] && shape[1] != 3)
    found.output.kind = OutputKind::map;
  return found;
}

void expect_classes(std::int64_t axis, Output& output) {
  const auto dimensions = std::ssize(output.shape) + 1;
  if (axis < 0) axis += dimensions;
  if (axis < 1 || axis >= dimensions || output.kind != OutputKind::values) return;
  output.kind = OutputKind::map;
  output.axis = axis;
}

void expect_values_beside_probabilities(std::vector<Output>& outputs) {
  const auto is_bare = [](const Output& o) { return o.function == OutputFunction::none; };
  if (std::ranges::all_of(outputs, [&](const Output& o) { return is_bare(o) || !is_row(o.shape); }))
    return;
  for (auto& output : outputs)
    if (is_bare(output) && output.kind == OutputKind::logits) output.kind = OutputKind::values;
}

}  // namespace zsq::models::onnx
