// SPDX-License-Identifier: Apache-2.0
#include "models/execute.h"

#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"

namespace zsq::models {
namespace {

// at::'s convolutions and pools pad both ends of a dimension alike.
bool symmetric(const Pads& pads) { return pads[0] == pads[2] && pads[1] == pads[3]; }

at::Tensor pad_spatial(const at::Tensor& x, const Pads& pads, double value) {
  return at::constant_pad_nd(x, {pads[1], pads[3], pads[0], pads[2]}, value);
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
    if (op.lo == 0 && !above) return at::relu(in_[0]);
    if (above && below) return at::hardtanh(in_[0], op.lo, op.hi);
    return at::clamp(in_[0], below ? std::optional<at::Scalar>(op.lo) : std::nullopt,
                     above ? std::optional<at::Scalar>(op.hi) : std::nullopt);
  }
  at::Tensor operator()(const LeakyRelu& op) const { return at::leaky_relu(in_[0], op.slope); }
  at::Tensor operator()(const Sigmoid&) const { return at::sigmoid(in_[0]); }
  at::Tensor operator()(const HardSigmoid& op) const {
    return at::clamp(at::add(at::mul(in_[0], op.alpha), op.beta), 0, 1);
  }
  at::Tensor operator()(const HardSwish&) const { return at::hardswish(in_[0]); }
  at::Tensor operator()(const Gelu&) const { return at::gelu(wide(in_[0])); }
  at::Tensor operator()(const LayerNorm& op) const {
    const auto &gamma = parameter("gamma"), &beta = parameter("beta");
    const auto channels_last = wide(in_[0]).movedim(1, -1);
    return at::layer_norm(channels_last, gamma.sizes(), gamma, beta, op.eps).movedim(-1, 1);
  }
  at::Tensor operator()(const Add&) const { return at::add(in_[0], in_[1]); }
  at::Tensor operator()(const Mul&) const { return at::mul(in_[0], in_[1]); }
  at::Tensor operator()(const Concat& op) const { return at::cat(in_, op.axis); }

  at::Tensor operator()(const MaxPool& op) const {
    const bool native =
        symmetric(op.pads) && 2 * op.pads[0] <= op.kernel[0] && 2 * op.pads[1] <= op.kernel[1];
    const auto pool = [&](const at::Tensor& x, at::IntArrayRef padding) {
      return at::max_pool2d(x, op.kernel, op.stride, padding, op.dilation, op.ceil_mode);
    };
    if (native) return pool(in_[0], {op.pads[0], op.pads[1]});
    return pool(pad_spatial(in_[0], op.pads, -std::numeric_limits<double>::infinity()), {0, 0});
  }
  at::Tensor operator()(const AvgPool& op) const {
    const bool native =
        symmetric(op.pads) && 2 * op.pads[0] <= op.kernel[0] && 2 * op.pads[1] <= op.kernel[1];
    if (native) {
      return at::avg_pool2d(in_[0], op.kernel, op.stride, {op.pads[0], op.pads[1]}, op.ceil_mode,
                            op.count_include_pad);
    }
    const auto pool = [&](const at::Tensor& x) {
      return at::avg_pool2d(pad_spatial(x, op.pads, 0), op.kernel, op.stride, {0, 0}, op.ceil_mode);
    };
    if (op.count_include_pad) return pool(in_[0]);
    // The same pool over ones is the share of each window that lies on the map.
    const auto on_map = at::ones({1, 1, in_[0].size(2), in_[0].size(3)}, in_[0].options());
    return pool(in_[0]).div(pool(on_map));
  }
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
  at::Tensor operator()(const Pad& op) const {
    std::vector<std::int64_t> last_dimension_first;
    for (auto axis = op.before.size(); axis-- > 0;) {
      last_dimension_first.push_back(op.before[axis]);
      last_dimension_first.push_back(op.after[axis]);
    }
    return at::constant_pad_nd(in_[0], last_dimension_first, op.value);
  }
  at::Tensor operator()(const Resize& op) const {
    return at::upsample_nearest2d(in_[0],
                                  {in_[0].size(2) * op.scale[0], in_[0].size(3) * op.scale[1]});
  }
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
  if (taps) {
    for (const auto tap : taps->nodes) last[static_cast<std::size_t>(tap)] = graph.nodes.size();
  }
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

}  // namespace

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
    for (const auto source : node.inputs) {
      inputs.push_back(values[static_cast<std::size_t>(source)]);
    }
    values[id] = std::visit(Evaluate(node, inputs, parameters, precision), node.op);
    for (const auto source : node.inputs) {
      if (last[static_cast<std::size_t>(source)] == id) {
        values[static_cast<std::size_t>(source)].reset();
      }
    }
    if (last[id] == id) values[id].reset();
    inputs.clear();
  }
  if (taps) {
    taps->values.clear();
    for (const auto tap : taps->nodes) {
      taps->values.push_back(values[static_cast<std::size_t>(tap)]);
    }
  }
  const auto& output = values[static_cast<std::size_t>(graph.output)];
  return precision == Precision::bf16 ? output.to(at::kFloat) : output;
}

std::vector<NodeId> batch_norm_inputs(const Graph& graph) {
  std::vector<NodeId> result;
  for (const auto& node : graph.nodes) {
    if (is<BatchNorm>(node)) result.push_back(node.inputs[0]);
  }
  return result;
}

}  // namespace zsq::models
