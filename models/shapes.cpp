// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "models/execute.h"
#include "models/load.h"
#include "models/pools.h"

namespace zsq::models {
namespace {

std::int64_t product(const Shape& shape, std::size_t from = 0) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(),
                         std::int64_t{1}, std::multiplies<>());
}

std::string shape_text(const Shape& shape) { return c10::str(at::IntArrayRef(shape)); }

class InferShape {
 public:
  InferShape(const Node& node, const std::vector<Shape>& inputs, const ParameterStore& parameters)
      : node_(node), in_(inputs), parameters_(parameters) {}

  Shape operator()(const Input&) const { refuse("its shape is the graph's input_shape"); }
  Shape operator()(const Parameter&) const { return shape_of("value"); }

  Shape operator()(const Conv2d& op) const {
    const auto weight = in_.size() > 1 ? in_[1] : shape_of("weight");
    const auto& x = map();
    if (weight.size() != 4 || weight[1] * op.groups != x[1] || weight[0] % op.groups != 0) {
      fail("a weight " + shape_text(weight) + " in " + std::to_string(op.groups) +
           " groups does not fit an input " + shape_text(x));
    }
    check_bias(weight[0]);
    return slide(weight[0], {weight[2], weight[3]}, op.stride, op.pads, op.dilation, false);
  }
  Shape operator()(const Linear&) const {
    const auto weight = in_.size() > 1 ? in_[1] : shape_of("weight");
    if (weight.size() != 2 || in_[0].back() != weight[1]) {
      fail("a weight " + shape_text(weight) + " does not fit an input " + shape_text(in_[0]));
    }
    check_bias(weight[0]);
    Shape shape = in_[0];
    shape.back() = weight[0];
    return shape;
  }
  Shape operator()(const BatchNorm&) const {
    for (const auto* role : {"gamma", "beta", "mean", "variance"}) check_per_channel(role);
    return in_[0];
  }
  Shape operator()(const LayerNorm& op) const {
    if (in_[0].size() != (op.of_map ? 4 : 2))
      refuse("does not take an input " + shape_text(in_[0]));
    for (const auto* role : {"gamma", "beta"}) check_per_channel(role);
    return in_[0];
  }
  Shape operator()(const Softmax& op) const {
    axis_of(op.axis);
    return in_[0];
  }

  Shape operator()(const Add&) const { return broadcast(); }
  Shape operator()(const Mul&) const { return broadcast(); }
  Shape operator()(const Binary&) const { return broadcast(); }
  Shape operator()(const PRelu&) const {
    const auto slope = shape_of("slope");
    if (broadcast(in_[0], slope) != in_[0])
      fail("a slope " + shape_text(slope) + " does not fit an input " + shape_text(in_[0]));
    return in_[0];
  }
  Shape operator()(const MatMul&) const {
    const auto &a = in_[0], &b = in_[1];
    if (a.size() < 3 || b.size() != a.size())
      refuse("needs two stacks of matrices, not " + shape_text(a) + " and " + shape_text(b));
    if (a.back() != b[b.size() - 2])
      fail(shape_text(a) + " and " + shape_text(b) + " cannot be multiplied");
    Shape shape = broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
    shape.push_back(a[a.size() - 2]);
    shape.push_back(b.back());
    return shape;
  }
  Shape operator()(const Reduce& op) const {
    Shape shape = in_[0];
    for (auto axis = op.axes.rbegin(); axis != op.axes.rend(); ++axis) {
      const auto at = axis_of(*axis);
      if (op.keepdims)
        shape[at] = 1;
      else
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return shape;
  }
  Shape operator()(const Expand& op) const {
    Shape shape{in_[0][0]};
    shape.insert(shape.end(), op.shape.begin(), op.shape.end());
    if (shape.size() < in_[0].size() || broadcast(in_[0], shape) != shape)
      fail(shape_text(in_[0]) + " cannot become " + shape_text(shape));
    return shape;
  }
  Shape operator()(const Interpolate& op) const {
    const auto& x = map();
    return {x[0], x[1], op.size[0], op.size[1]};
  }
  Shape operator()(const Concat& op) const {
    Shape shape = in_[0];
    const auto axis = axis_of(op.axis);
    for (std::size_t i = 1; i < in_.size(); ++i) {
      Shape other = in_[i];
      if (axis < other.size()) other[axis] = in_[0][axis];
      if (other != in_[0])
        fail(shape_text(in_[0]) + " and " + shape_text(in_[i]) + " cannot be joined");
      shape[axis] += in_[i][axis];
    }
    return shape;
  }

  Shape operator()(const MaxPool& op) const {
    return slide(map()[1], op.kernel, op.stride, op.pads, op.dilation, op.ceil_mode);
  }
  Shape operator()(const AvgPool& op) const {
    return slide(map()[1], op.kernel, op.stride, op.pads, {1, 1}, op.ceil_mode);
  }
  Shape operator()(const GlobalAvgPool& op) const {
    const auto& x = map();
    return op.keepdims ? Shape{x[0], x[1], 1, 1} : Shape{x[0], x[1]};
  }
  Shape operator()(const Resize& op) const {
    const auto& x = map();
    return {x[0], x[1], x[2] * op.scale[0], x[3] * op.scale[1]};
  }

  Shape operator()(const Flatten&) const { return {in_[0][0], product(in_[0], 1)}; }
  Shape operator()(const Reshape& op) const {
    Shape shape{in_[0][0]};
    shape.insert(shape.end(), op.shape.begin(), op.shape.end());
    const auto elements = product(in_[0]);
    const auto open = std::find(shape.begin() + 1, shape.end(), -1);
    if (open != shape.end()) {
      const auto others = -product(shape);
      *open = others > 0 ? elements / others : 0;
    }
    if (product(shape) != elements)
      fail(shape_text(in_[0]) + " cannot become " + shape_text(shape));
    return shape;
  }
  Shape operator()(const Transpose& op) const {
    Shape shape;
    auto sorted = op.perm;
    std::sort(sorted.begin(), sorted.end());
    bool valid = sorted.size() == in_[0].size();
    for (std::size_t i = 0; valid && i < sorted.size(); ++i)
      valid = sorted[i] == static_cast<std::int64_t>(i);
    if (!valid)
      fail(shape_text(op.perm) + " is no order of the dimensions of " + shape_text(in_[0]));
    for (const auto axis : op.perm) shape.push_back(in_[0][axis_of(axis)]);
    return shape;
  }
  Shape operator()(const Slice& op) const {
    Shape shape = in_[0];
    auto& size = shape[axis_of(op.axis)];
    if (op.step < 1) refuse("a step of " + std::to_string(op.step));
    const auto index = [&](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, {0}, size); };
    const auto length = std::max<std::int64_t>(0, index(op.end) - index(op.start));
    size = (length + op.step - 1) / op.step;
    return shape;
  }
  Shape operator()(const Pad& op) const {
    Shape shape = in_[0];
    if (op.before.size() != shape.size() || op.after.size() != shape.size())
      fail("does not name two pads for each dimension of " + shape_text(shape));
    for (std::size_t i = 0; i < shape.size(); ++i) {
      shape[i] += op.before.at(i) + op.after.at(i);
      if (shape[i] < 1) refuse("nothing is left of an input " + shape_text(in_[0]));
    }
    return shape;
  }

  // Element by element, or an operator that is promised to keep the shape.
  template <class Op>
  Shape operator()(const Op&) const {
    return in_[0];
  }

 private:
  std::string named(const std::string& what) const {
    return op_name(node_.op) + " '" + node_.name + "': " + what;
  }
  [[noreturn]] void fail(const std::string& what) const { throw ShapeError(named(what)); }
  // What this engine does not compute, and a runtime may.
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::unsupported_model, named(what));
  }
  Shape shape_of(const std::string& role) const {
    return parameters_.at(node_.params.at(role)).sizes().vec();
  }
  void check_bias(std::int64_t outputs) const {
    if (node_.params.count("bias") == 0 || shape_of("bias") == Shape{outputs}) return;
    fail("a bias " + shape_text(shape_of("bias")) + " does not fit " + std::to_string(outputs) +
         " outputs");
  }
  void check_per_channel(const char* role) const {
    if (in_[0].size() >= 2 && shape_of(role) == Shape{in_[0][1]}) return;
    fail("a " + std::string(role) + " " + shape_text(shape_of(role)) + " does not fit an input " +
         shape_text(in_[0]));
  }
  std::size_t axis_of(std::int64_t axis) const {
    if (axis < 0 || axis >= static_cast<std::int64_t>(in_[0].size())) {
      fail("axis " + std::to_string(axis) + " of an input " + shape_text(in_[0]));
    }
    return static_cast<std::size_t>(axis);
  }
  const Shape& map() const {
    if (in_[0].size() != 4) refuse("needs an input [N, C, H, W], not " + shape_text(in_[0]));
    return in_[0];
  }
  Shape slide(std::int64_t channels, Pair kernel, Pair stride, const Pads& pads, Pair dilation,
              bool ceil) const {
    const auto& x = map();
    const auto windows = [&](std::size_t i) {
      return window_count(
          {x[i + 2], kernel[i], stride[i], pads[i], pads[i + 2], dilation[i], ceil});
    };
    const auto height = windows(0), width = windows(1);
    if (height < 1 || width < 1) fail("the window is larger than its input " + shape_text(x));
    return {x[0], channels, height, width};
  }
  Shape broadcast() const { return broadcast(in_[0], in_[1]); }
  Shape broadcast(const Shape& a, const Shape& b) const {
    const auto dimensions = std::max(a.size(), b.size());
    Shape shape(dimensions, 1);
    for (const auto* input : {&a, &b}) {
      const auto offset = dimensions - input->size();
      for (std::size_t i = 0; i < input->size(); ++i) {
        auto& size = shape[offset + i];
        if (size != 1 && (*input)[i] != 1 && size != (*input)[i])
          fail(shape_text(a) + " and " + shape_text(b) + " do not broadcast");
        size = std::max(size, (*input)[i]);
      }
    }
    return shape;
  }

  const Node& node_;
  const std::vector<Shape>& in_;
  const ParameterStore& parameters_;
};

}  // namespace

Shape infer_shape(const Node& node, const std::vector<Shape>& inputs,
                  const ParameterStore& parameters) {
  return std::visit(InferShape(node, inputs, parameters), node.op);
}

std::vector<Shape> infer_shapes(const Graph& graph, const ParameterStore& parameters) {
  std::vector<Shape> shapes(graph.nodes.size());
  for (std::size_t id = 0; id < shapes.size(); ++id) {
    if (static_cast<NodeId>(id) == graph.input) {
      shapes[id] = {1, graph.input_shape[0], graph.input_shape[1], graph.input_shape[2]};
      continue;
    }
    std::vector<Shape> inputs;
    for (const auto source : graph.nodes[id].inputs) {
      inputs.push_back(shapes[static_cast<std::size_t>(source)]);
    }
    shapes[id] = infer_shape(graph.nodes[id], inputs, parameters);
  }
  return shapes;
}

std::vector<std::int64_t> multiply_accumulates(const Model& model) {
  const auto& nodes = model.graph.nodes;
  const auto shapes = infer_shapes(model.graph, model.parameters);
  std::vector<std::int64_t> result(nodes.size(), 0);
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const auto& node = nodes[id];
    if (!is<Conv2d>(node) && !is<Linear>(node)) continue;
    const auto weight = node.inputs.size() > 1
                            ? shapes[static_cast<std::size_t>(node.inputs[1])]
                            : model.parameters.at(node.params.at("weight")).sizes().vec();
    result[id] = product(shapes[id]) * product(weight, 1);
  }
  return result;
}

}  // namespace zsq::models
