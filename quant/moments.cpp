// SPDX-License-Identifier: Apache-2.0
#include "quant/moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "models/execute.h"
#include "quant/fold_batch_norm.h"
#include "quant/placement.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ParameterStore;

// The interpreter carries means and variances through a network as a batch of two: row 0 holds the
// means, row 1 the variances. Operators for which each row may go its own way (pools, reshapes,
// sums, zero padding) run as they are; each of the others is replaced by one of these.
class MomentOp : public models::CustomOp {
 public:
  using Rule = std::function<at::Tensor(const std::vector<at::Tensor>&, const ParameterStore&)>;
  explicit MomentOp(Rule rule) : rule_(std::move(rule)) {}
  std::string kind() const override { return "moments"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const ParameterStore& parameters) const override {
    return rule_(inputs, parameters);
  }

 private:
  Rule rule_;
};

at::Tensor mean_of(const at::Tensor& rows) { return rows.narrow(0, 0, 1); }
at::Tensor variance_of(const at::Tensor& rows) { return rows.narrow(0, 1, 1); }
at::Tensor pack(const at::Tensor& mean, const at::Tensor& variance) {
  return at::cat({mean, variance.clamp_min(0)}).to(at::kFloat);
}

// One node as a network, for values of any number.
at::Tensor run_alone(const Node& node, const at::Tensor& x, const ParameterStore& parameters) {
  Graph graph;
  graph.input_shape = {x.size(1), x.size(2), x.size(3)};
  graph.input = graph.add({"x", models::Input{}, {}});
  Node alone = node;
  alone.inputs = {graph.input};
  graph.output = graph.add(std::move(alone));
  return models::execute(graph, parameters, x);
}

at::Tensor batch_norm_moments(const Node& node, const at::Tensor& x,
                              const ParameterStore& parameters) {
  const auto param = [&](const char* role) { return parameters.at(node.params.at(role)); };
  const double eps = models::get_if<models::BatchNorm>(node)->eps;
  const auto variance = param("variance");
  const auto rows =
      at::stack({param("beta"), param("gamma").square().mul(variance).div(variance.add(eps))});
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = 2;
  shape[1] = rows.size(1);
  return rows.view(shape).expand_as(x);
}

at::Tensor clip_moments(const models::Clip& clip, const at::Tensor& rows) {
  const auto m = mean_of(rows).to(at::kDouble);
  const auto s = variance_of(rows).to(at::kDouble).sqrt().clamp_min(1e-12);
  // An end that is infinite adds nothing.
  struct End {
    at::Tensor below, first, second;  // Phi, and what it adds to E y and E y^2 besides
  };
  const auto end = [&](double at_end) -> End {
    const auto zero = at::zeros_like(m);
    if (!std::isfinite(at_end)) return {at_end < 0 ? zero : zero.add(1), zero, zero};
    const auto p = m.neg().add(at_end).div(s);
    const auto density = p.square().mul(-0.5).exp().mul(s / std::sqrt(2 * std::numbers::pi));
    const auto below = p.mul(std::numbers::sqrt2 / 2).erf().add(1).mul(0.5);
    const auto outside = at_end == clip.lo ? below : below.neg().add(1);
    const auto inner = at_end == clip.lo ? density : density.neg();
    return {below, outside.mul(at_end).add(inner),
            outside.mul(at_end * at_end).add(inner.mul(m.add(at_end)))};
  };
  const End lo = end(clip.lo), hi = end(clip.hi);
  const auto between = hi.below - lo.below;
  const auto mean = lo.first + hi.first + m * between;
  const auto square = lo.second + hi.second + (m.square() + s.square()) * between;
  return pack(mean, square - mean.square());
}

// The trapezoid rule over +-6 deviations.
at::Tensor function_moments(const Node& node, const at::Tensor& rows,
                            const ParameterStore& parameters) {
  constexpr int kSteps = 24;
  const auto m = mean_of(rows).reshape({1, 1, 1, -1});
  const auto s = variance_of(rows).sqrt().reshape({1, 1, 1, -1});
  auto first = at::zeros_like(m), second = at::zeros_like(m);
  double total = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double z = 6.0 * i / kSteps, weight = std::exp(-z * z / 2);
    const auto y = run_alone(node, m.add(s, z), parameters);
    first.add_(y, weight);
    second.add_(y.square(), weight);
    total += weight;
  }
  first.div_(total);
  const auto as_before = [&](const at::Tensor& x) { return x.reshape(mean_of(rows).sizes()); };
  return pack(as_before(first), as_before(second.div(total).sub(first.square())));
}

at::Tensor product_moments(const at::Tensor& x, const at::Tensor& y) {
  const auto a = mean_of(x), b = mean_of(y), u = variance_of(x), v = variance_of(y);
  return pack(a * b, u * v + u * b.square() + v * a.square());
}

// Of a stored tensor that broadcasts over images of so many dimensions.
at::Tensor constant_moments(const at::Tensor& value, std::int64_t dimensions) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dimensions - value.dim()), 1);
  shape.insert(shape.end(), value.sizes().begin(), value.sizes().end());
  return pack(value.view(shape), at::zeros_like(value.view(shape)));
}

at::Tensor layer_moments(const Node& node, const std::vector<at::Tensor>& inputs,
                         const ParameterStore& parameters) {
  const auto& weight = inputs.size() > 1 ? inputs[1] : parameters.at(node.params.at("weight"));
  auto mean = apply_layer(node, mean_of(inputs[0]), weight);
  const auto bias = node.params.find("bias");
  if (bias != node.params.end()) {
    const auto& values = parameters.at(bias->second);
    mean = mean + (mean.dim() == 4 ? values.view({1, -1, 1, 1}) : values);
  }
  return pack(mean, apply_layer(node, variance_of(inputs[0]), weight.square()));
}

at::Tensor pad_moments(const Node& node, const at::Tensor& rows, const ParameterStore& parameters) {
  Node zeros = node;
  std::get<models::Pad>(zeros.op).value = 0;
  return pack(run_alone(node, mean_of(rows), parameters),
              run_alone(zeros, variance_of(rows), parameters));
}

bool is_function(const Node& node) {
  return models::is<models::LeakyRelu>(node) || models::is<models::Sigmoid>(node) ||
         models::is<models::HardSigmoid>(node) || models::is<models::HardSwish>(node);
}

using Inputs = std::vector<at::Tensor>;

// Add and Mul, of which one side may be stored.
MomentOp::Rule pair_rule(const Graph& graph, const Node& node) {
  const auto stored = [&](std::size_t i) {
    return models::is<models::Parameter>(graph[node.inputs[i]]);
  };
  return [product = models::is<models::Mul>(node), first = stored(0), second = stored(1)](
             const Inputs& in, const ParameterStore&) {
    const auto a = first ? constant_moments(in[0], in[1].dim()) : in[0];
    const auto b = second ? constant_moments(in[1], in[0].dim()) : in[1];
    return product ? product_moments(a, b) : a + b;
  };
}

// The rule for a node that does not run as it is; none for the others.
MomentOp::Rule rule_of(const Graph& graph, const Node& node) {
  if (models::is<models::BatchNorm>(node))
    return [node](const Inputs& in, const ParameterStore& p) {
      return batch_norm_moments(node, in[0], p);
    };
  if (const auto* clip = models::get_if<models::Clip>(node))
    return [clip = *clip](const Inputs& in, const ParameterStore&) {
      return clip_moments(clip, in[0]);
    };
  if (is_function(node))
    return [node](const Inputs& in, const ParameterStore& p) {
      return function_moments(node, in[0], p);
    };
  if (models::is<models::Add>(node) || models::is<models::Mul>(node)) return pair_rule(graph, node);
  if (models::is<models::Pad>(node))
    return
        [node](const Inputs& in, const ParameterStore& p) { return pad_moments(node, in[0], p); };
  if (is_layer(node))
    return [node](const Inputs& in, const ParameterStore& p) { return layer_moments(node, in, p); };
  if (models::is<models::Custom>(node))  // a quantizer
    return [](const Inputs& in, const ParameterStore&) { return in[0]; };
  return nullptr;
}

Graph moment_graph(const Graph& network, const ParameterStore& parameters) {
  Graph graph = network;
  const auto shapes = models::infer_shapes(network, parameters);
  const auto consumers = network.consumers();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    auto rule = rule_of(network, node);
    // BatchNorm knows its output: of its layer the shape is enough.
    if (is_layer(network[static_cast<NodeId>(i)]) &&
        batch_norm_behind(network, consumers, static_cast<NodeId>(i)) >= 0) {
      auto shape = shapes[i];
      shape[0] = 2;
      rule = [shape](const auto&, const ParameterStore&) { return at::zeros({1}).expand(shape); };
    }
    if (rule) node.op = models::Custom{std::make_shared<MomentOp>(std::move(rule))};
  }
  return graph;
}

}  // namespace

at::Tensor apply_layer(const models::Node& layer, const at::Tensor& x, const at::Tensor& weight) {
  if (models::is<models::Linear>(layer)) return at::linear(x, weight);
  ParameterStore store;
  store.set("weight", weight);
  Node node = layer;
  node.params = {{"weight", "weight"}};
  return run_alone(node, x, store);
}

std::vector<Moments> activation_moments(const Graph& graph, const ParameterStore& parameters,
                                        const std::vector<NodeId>& nodes) {
  const at::NoGradGuard no_grad;
  const auto [channels, height, width] = graph.input_shape;
  const auto options = parameters.at(parameters.names().front()).options();
  const auto images = at::zeros({1, channels, height, width}, options);
  models::Taps taps{nodes, {}};
  models::execute(moment_graph(graph, parameters), parameters, pack(images, images.add(1)), &taps);
  std::vector<Moments> moments;
  for (const auto& rows : taps.values) moments.push_back({mean_of(rows), variance_of(rows)});
  return moments;
}

}  // namespace zsq::quant
