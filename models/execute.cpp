// SPDX-License-Identifier: Apache-2.0
#include "models/execute.h"

#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/div.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "models/elementwise.h"
#include "models/interpolate.h"
#include "models/pools.h"

namespace zsq::models {
namespace {

// at::'s convolutions and pools pad both ends of a dimension alike.
bool symmetric(const Pads& pads) { return pads[0] == pads[2] && pads[1] == pads[3]; }

at::Tensor pad_spatial(const at::Tensor& x, const Pads& pads, double value) {
  return at::constant_pad_nd(x, {pads[1], pads[3], pads[0], pads[2]}, value);
}

// Nothing else sees its values, nor will a backward pass: they may be overwritten.
bool is_own(const at::Tensor& x) {
  return x.use_count() == 1 && x.storage().use_count() == 1 && !x.requires_grad();
}

// One node's value from the values of its inputs.
class Evaluate {
 public:
  Evaluate(const Node& node, const std::vector<at::Tensor>& inputs,
           const ParameterStore& parameters, Precision precision)
      : node_(node), in_(inputs), parameters_(parameters), bf16_(precision == Precision::bf16) {}

  at::Tensor operator()(const Input&) const {
    throw Error(ErrorCode::internal, "a second Input node: '" + node_.name + "'");
  }
  at::Tensor operator()(const Parameter&) const { return parameter("value"); }

  at::Tensor operator()(const Conv2d& op) const {
    const auto convolve = [&](const at::Tensor& x, at::IntArrayRef padding) {
      return at::conv2d(narrow(x), narrow(weight()), narrow(bias()), op.stride, padding,
                        op.dilation, op.groups);
    };
    if (symmetric(op.pads)) return convolve(in_[0], {op.pads[0], op.pads[1]});
    return convolve(pad_spatial(in_[0], op.pads, 0), {0, 0});
  }
  at::Tensor operator()(const Linear&) const { return at::linear(wide(in_[0]), weight(), bias()); }
  at::Tensor operator()(const BatchNorm& op) const {
    return at::batch_norm(in_[0], parameter("gamma"), parameter("beta"), parameter("mean"),
                          parameter("variance"), false, 0, op.eps, true);
  }

  at::Tensor operator()(const Clip& op) const {
    if (node_.params.contains("upper")) {
      if (node_.params.contains("lower"))
        return at::clamp(in_[0], parameter("lower"), parameter("upper"));
      return at::minimum(at::clamp_min(in_[0], op.lo), parameter("upper"));
    }
    const bool above = std::isfinite(op.hi), below = std::isfinite(op.lo);
    at::Tensor own = is_own(in_[0]) ? in_[0] : at::Tensor();
    if (op.lo == 0 && !above) return own.defined() ? at::relu_(own) : at::relu(in_[0]);
    if (above && below)
      return own.defined() ? at::hardtanh_(own, op.lo, op.hi) : at::hardtanh(in_[0], op.lo, op.hi);
    return at::clamp(in_[0], below ? std::optional<at::Scalar>(op.lo) : std::nullopt,
                     above ? std::optional<at::Scalar>(op.hi) : std::nullopt);
  }
  at::Tensor operator()(const LeakyRelu& op) const { return at::leaky_relu(in_[0], op.slope); }
  at::Tensor operator()(const Sigmoid&) const { return at::sigmoid(in_[0]); }
  at::Tensor operator()(const HardSigmoid& op) const {
    const auto x = node_.params.contains("scale") ? at::mul(in_[0], parameter("scale")) : in_[0];
    return at::clamp(at::add(at::mul(x, op.alpha), op.beta), 0, 1);
  }
  at::Tensor operator()(const HardSwish&) const {
    return node_.params.empty() ? at::hardswish(in_[0]) : at::mul(in_[0], (*this)(HardSigmoid{}));
  }
  at::Tensor operator()(const Gelu&) const { return at::gelu(wide(in_[0])); }
  at::Tensor operator()(const Elementwise& op) const { return apply(op, wide(in_[0])); }
  at::Tensor operator()(const PRelu&) const {
    return at::add(at::clamp_min(in_[0], 0), at::mul(parameter("slope"), at::clamp_max(in_[0], 0)));
  }
  at::Tensor operator()(const LayerNorm& op) const {
    const auto &gamma = parameter("gamma"), &beta = parameter("beta");
    const auto channels_last = wide(in_[0]).movedim(1, -1);
    return at::layer_norm(channels_last, gamma.sizes(), gamma, beta, op.eps).movedim(-1, 1);
  }
  at::Tensor operator()(const Add&) const { return at::add(in_[0], in_[1]); }
  at::Tensor operator()(const Mul&) const { return at::mul(in_[0], in_[1]); }
  at::Tensor operator()(const Binary& op) const {
    const auto a = wide(in_[0]), b = wide(in_[1]);
    switch (op.kind) {
      case BinaryKind::sub:
        return at::sub(a, b);
      case BinaryKind::div:
        return at::div(a, b);
      case BinaryKind::maximum:
        return at::maximum(a, b);
      case BinaryKind::minimum:
        return at::minimum(a, b);
      case BinaryKind::power:
        break;
    }
    return at::pow(a, b);
  }
  at::Tensor operator()(const MatMul&) const { return at::matmul(wide(in_[0]), wide(in_[1])); }
  at::Tensor operator()(const Reduce& op) const {
    const auto x = wide(in_[0]);
    switch (op.kind) {
      case ReduceKind::mean:
        return at::mean(x, op.axes, op.keepdims);
      case ReduceKind::sum:
        return at::sum(x, op.axes, op.keepdims);
      case ReduceKind::max:
        return at::amax(x, op.axes, op.keepdims);
      case ReduceKind::min:
        return at::amin(x, op.axes, op.keepdims);
      case ReduceKind::product:
        break;
    }
    auto product = x;  // from the last axis on, so that the others keep their places
    for (auto axis = op.axes.rbegin(); axis != op.axes.rend(); ++axis)
      product = at::prod(product, *axis, op.keepdims);
    return product;
  }
  at::Tensor operator()(const Concat& op) const { return at::cat(in_, op.axis); }

  at::Tensor operator()(const MaxPool& op) const { return max_pool(op, in_[0]); }
  at::Tensor operator()(const AvgPool& op) const { return average_pool(op, in_[0]); }
  at::Tensor operator()(const GlobalAvgPool& op) const {
    return at::mean(wide(in_[0]), {2, 3}, op.keepdims);
  }

  at::Tensor operator()(const Flatten&) const { return at::flatten(in_[0], 1); }
  at::Tensor operator()(const Reshape& op) const {
    std::vector<std::int64_t> shape{in_[0].size(0)};
    shape.insert(shape.end(), op.shape.begin(), op.shape.end());
    return at::reshape(in_[0], shape);
  }
  at::Tensor operator()(const Transpose& op) const { return in_[0].permute(op.perm); }
  at::Tensor operator()(const Slice& op) const {
    return at::slice(in_[0], op.axis, op.start, op.end, op.step);
  }
  at::Tensor operator()(const Pad& op) const { return pad(op, in_[0]); }
  at::Tensor operator()(const Expand& op) const {
    std::vector<std::int64_t> shape{in_[0].size(0)};
    shape.insert(shape.end(), op.shape.begin(), op.shape.end());
    return in_[0].expand(shape);
  }
  at::Tensor operator()(const Resize& op) const {
    return at::upsample_nearest2d(in_[0],
                                  {in_[0].size(2) * op.scale[0], in_[0].size(3) * op.scale[1]});
  }
  at::Tensor operator()(const Interpolate& op) const { return interpolate(op, wide(in_[0])); }
  at::Tensor operator()(const Softmax& op) const { return at::softmax(in_[0], op.axis); }
  at::Tensor operator()(const Custom& custom) const { return custom.op->forward(in_, parameters_); }

 private:
  const at::Tensor& parameter(const std::string& role) const {
    return parameters_.at(node_.params.at(role));
  }
  const at::Tensor& weight() const { return in_.size() > 1 ? in_[1] : parameter("weight"); }
  at::Tensor bias() const { return node_.params.count("bias") ? parameter("bias") : at::Tensor(); }
  at::Tensor narrow(const at::Tensor& t) const {
    return bf16_ && t.defined() ? t.to(at::kBFloat16) : t;
  }
  at::Tensor wide(const at::Tensor& t) const { return bf16_ ? t.to(at::kFloat) : t; }

  const Node& node_;
  const std::vector<at::Tensor>& in_;
  const ParameterStore& parameters_;
  bool bf16_;
};

// For each node the last node that reads it; the output and the taps are kept to the end.
std::vector<std::size_t> last_uses(const Graph& graph, const Taps* taps) {
  std::vector<std::size_t> last(graph.nodes.size());
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    last[id] = id;
    for (const auto input : graph.nodes[id].inputs) last[static_cast<std::size_t>(input)] = id;
  }
  last[static_cast<std::size_t>(graph.output)] = graph.nodes.size();
  if (taps)
    for (const auto tap : taps->nodes) last[static_cast<std::size_t>(tap)] = graph.nodes.size();
  return last;
}

void check_input(const Graph& graph, const at::Tensor& input) {
  const auto& [channels, height, width] = graph.input_shape;
  if (input.dim() == 4 && input.size(1) == channels && input.size(2) == height &&
      input.size(3) == width) {
    return;
  }
  throw Error(ErrorCode::bad_input, "the network takes images of shape [N, " +
                                        std::to_string(channels) + ", " + std::to_string(height) +
                                        ", " + std::to_string(width) + "], not " +
                                        c10::str(input.sizes()));
}

// libtorch's text of tensors that do not fit becomes the node's name and shapes; what ran out of
// memory stays, because callers make smaller batches then.
[[noreturn]] void rethrow_named(const Node& node, const std::vector<at::Tensor>& inputs) {
  try {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    for (const auto* word : {"memory", "CUDA", "Allocator", "CUDNN", "cuDNN"})
      if (text.find(word) != std::string::npos) throw;
    std::string shapes;
    for (const auto& input : inputs)
      shapes += (shapes.empty() ? "" : ", ") + c10::str(input.sizes());
    throw Error(ErrorCode::internal, op_name(node.op) + " '" + node.name +
                                         "' cannot be computed from inputs of shapes " + shapes);
  }
}

}  // namespace

at::Tensor execute_node(const Node& node, const std::vector<at::Tensor>& inputs,
                        const ParameterStore& parameters, Precision precision) {
  try {
    return std::visit(Evaluate(node, inputs, parameters, precision), node.op);
  } catch (const c10::Error&) {
    rethrow_named(node, inputs);
  }
}

at::Tensor execute(const Graph& graph, const ParameterStore& parameters, const at::Tensor& input,
                   Taps* taps, Precision precision) {
  check_input(graph, input);
  const auto last = last_uses(graph, taps);
  std::vector<at::Tensor> values(graph.nodes.size());
  std::vector<at::Tensor> inputs;
  for (std::size_t id = 0; id < values.size(); ++id) {
    const auto& node = graph.nodes[id];
    if (static_cast<NodeId>(id) == graph.input) {
      values[id] = input;
      continue;
    }
    for (const auto source : node.inputs)
      inputs.push_back(values[static_cast<std::size_t>(source)]);
    for (const auto source : node.inputs)
      if (last[static_cast<std::size_t>(source)] == id)
        values[static_cast<std::size_t>(source)].reset();
    values[id] = execute_node(node, inputs, parameters, precision);
    if (last[id] == id) values[id].reset();
    inputs.clear();
  }
  if (taps) {
    taps->values.clear();
    for (const auto tap : taps->nodes)
      taps->values.push_back(values[static_cast<std::size_t>(tap)]);
  }
  const auto& output = values[static_cast<std::size_t>(graph.output)];
  return precision == Precision::bf16 ? output.to(at::kFloat) : output;
}

std::vector<NodeId> batch_norm_inputs(const Graph& graph) {
  std::vector<NodeId> result;
  for (const auto& node : graph.nodes)
    if (is<BatchNorm>(node)) result.push_back(node.inputs[0]);
  return result;
}

}  // namespace zsq::models
