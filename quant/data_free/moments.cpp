// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "models/batch_norm_chain.h"
#include "quant/data_free/distribution.h"
#include "quant/data_free/operator_rows.h"
#include "quant/data_free/sources.h"
#include "quant/placement.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ParameterStore;
using Inputs = std::vector<at::Tensor>;

// Of the squared distance to 0; half of the distance.
constexpr double kOtherSide = 0.25;

// The interpreter carries rows through a network as a batch of images. Operators that act on each
// value alone or move values run as they are; each of the others is replaced by one of these.
class RowsOp : public models::CustomOp {
 public:
  explicit RowsOp(RowsRule rule) : rule_(std::move(rule)) {}
  std::string kind() const override { return "rows"; }
  at::Tensor forward(const Inputs& inputs, const ParameterStore& parameters) const override {
    return rule_(inputs, parameters);
  }

 private:
  RowsRule rule_;
};

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

at::Tensor batch_norm_rows(const Node& node, const at::Tensor& x,
                           const ParameterStore& parameters) {
  const auto param = [&](const char* role) { return parameters.at(node.params.at(role)); };
  const double eps = models::get_if<models::BatchNorm>(node)->eps;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = -1;
  const auto variance = param("variance");
  const auto rows = distribution::normal(
      param("beta").view(shape),
      param("gamma").square().mul(variance).div(variance.add(eps)).view(shape));
  return as_large_as(x.sizes().vec(), rows);
}

// Each channel over many images: that its values at one place have mean 0 and variance 1 among all
// channels is taken for each channel.
at::Tensor layer_norm_rows(const Node& node, const at::Tensor& x,
                           const ParameterStore& parameters) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = -1;
  const auto gamma = parameters.at(node.params.at("gamma"));
  return as_large_as(x.sizes().vec(),
                     distribution::normal(parameters.at(node.params.at("beta")).view(shape),
                                          gamma.square().view(shape)));
}

// Channels whose rows are to reach beyond 0 (Purpose::ranges).
enum class Caution { none, negative, all };

at::Tensor layer_rows(const Node& node, const Inputs& inputs, const models::Shape& shape,
                      const ParameterStore& parameters, Caution caution) {
  const auto& weight = inputs.size() > 1 ? inputs[1] : parameters.at(node.params.at("weight"));
  const auto* conv = models::get_if<models::Conv2d>(node);
  const bool pointwise = conv && conv->pads == models::Pads{} && weight[0][0].numel() == 1;
  const auto x = pointwise && same_everywhere(inputs[0]) ? one_place(inputs[0]) : inputs[0];
  Node layer = node;
  if (x.size(-1) == 1 && pointwise) std::get<models::Conv2d>(layer.op).stride = {1, 1};
  auto mean = apply_layer(layer, distribution::mean(x), weight);
  if (const auto bias = node.params.find("bias"); bias != node.params.end()) {
    const auto& values = parameters.at(bias->second);
    mean = mean + (conv ? values.view({1, -1, 1, 1}) : values);
  }
  const auto variance = apply_layer(layer, distribution::variance(x), weight.square());
  const auto rows = distribution::normal(mean, variance);
  if (caution == Caution::none) return as_large_as(shape, rows);
  const auto wide = distribution::normal(mean, variance.maximum(mean.square().mul(kOtherSide)));
  const auto inward = rows.sub(mean).mul(mean).lt(0);  // rows on the side of 0
  const auto widened = caution == Caution::all ? inward : inward.logical_and(mean.lt(0));
  return as_large_as(shape, at::where(widened, wide, rows));
}

// What the reader of a layer's output asks for, after quantizers and moved values.
Caution caution_for(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers,
                    NodeId id) {
  if (id == graph.output && graph.signature.function != models::OutputFunction::none)
    return Caution::all;
  Caution caution = Caution::none;
  for (const NodeId reader : consumers[id]) {
    const Node& node = graph[reader];
    const auto* clip = models::get_if<models::Clip>(node);
    const bool passes = models::is<models::Custom>(node) || models::is<models::Flatten>(node) ||
                        models::is<models::Reshape>(node) || models::is<models::Slice>(node) ||
                        models::is<models::Transpose>(node);
    if (passes)
      caution = std::max(caution, caution_for(graph, consumers, reader));
    else if (is_function(node))
      caution = std::max(caution, clip && clip->lo == 0 ? Caution::negative : Caution::all);
  }
  return caution;
}

// The sizes of as many rows as `rows` has, of a tensor that is `shape` for one image.
models::Shape as_rows(models::Shape shape, const at::Tensor& rows) {
  shape[0] = rows.size(0);
  return shape;
}

at::Tensor pool_rows(const Node& node, const at::Tensor& rows, const models::Shape& shape,
                     const ParameterStore& parameters) {
  if (models::is<models::GlobalAvgPool>(node)) {
    const auto places = rows.size(2) * rows.size(3);
    const auto average = same_everywhere(rows) ? one_place(rows) : rows.mean({2, 3}, true);
    return distribution::average_of(average, static_cast<double>(places), kFarCorrelation)
        .reshape(as_rows(shape, rows));
  }
  if (const auto* pool = models::get_if<models::AvgPool>(node)) {
    const bool even =
        same_everywhere(rows) && (pool->pads == models::Pads{} || !pool->count_include_pad);
    const auto average =
        even ? as_large_as(shape, one_place(rows)) : run_alone(node, rows, parameters);
    return distribution::average_of(average, static_cast<double>(pool->kernel[0] * pool->kernel[1]),
                                    kNearCorrelation);
  }
  const auto& kernel = models::get_if<models::MaxPool>(node)->kernel;
  const double independent =
      std::pow(static_cast<double>(kernel[0] * kernel[1]), 1 - kNearCorrelation);
  const auto largest = distribution::largest_of(rows, independent);
  return same_everywhere(largest) ? as_large_as(shape, one_place(largest))
                                  : run_alone(node, largest, parameters);
}

bool is_pool(const Node& node) {
  return models::is<models::MaxPool>(node) || models::is<models::AvgPool>(node) ||
         models::is<models::GlobalAvgPool>(node);
}

bool pads_channels_only(const models::Pad& pad) {
  const auto zero = [](std::int64_t n) { return n == 0; };
  return pad.before.size() == 4 && std::all_of(pad.before.begin() + 2, pad.before.end(), zero) &&
         std::all_of(pad.after.begin() + 2, pad.after.end(), zero);
}

RowsRule pair_rule(const Node& node, bool one_source) {
  if (models::is<models::Mul>(node))
    return [one_source](const Inputs& in, const ParameterStore&) {
      if (!one_source) return distribution::product(in[0], in[1]);
      return distribution::elementwise(in, [](const Inputs& x) { return x[0] * x[1]; });
    };
  return [one_source](const Inputs& in, const ParameterStore&) {
    if (!one_source) return distribution::sum(in[0], in[1]);
    return distribution::elementwise(in, [](const Inputs& x) { return x[0] + x[1]; });
  };
}

// The rule for a node that does not run as it is; none for the others.
RowsRule rule_of(const Node& node, bool one_source, const models::Shape& shape, Caution caution) {
  if (models::is<models::BatchNorm>(node))
    return [node](const Inputs& in, const ParameterStore& p) {
      return batch_norm_rows(node, in[0], p);
    };
  if (models::is<models::LayerNorm>(node))
    return [node](const Inputs& in, const ParameterStore& p) {
      return layer_norm_rows(node, in[0], p);
    };
  if (is_function(node))
    return [node](const Inputs& in, const ParameterStore& p) {
      return distribution::elementwise(in, [&](const Inputs& x) {
        return run_alone(node, x[0].reshape({x[0].size(0), -1, 1, 1}), p).view(x[0].sizes());
      });
    };
  if (models::is<models::Add>(node) || models::is<models::Mul>(node))
    return pair_rule(node, one_source);
  if (const auto* concat = models::get_if<models::Concat>(node))
    return [axis = concat->axis](const Inputs& in, const ParameterStore&) {
      const bool even = axis == 1 && std::all_of(in.begin(), in.end(), same_everywhere);
      if (!even) return at::cat(in, axis);
      Inputs places;
      for (const auto& x : in) places.push_back(one_place(x));
      return at::cat(places, 1).expand({-1, -1, in[0].size(2), in[0].size(3)});
    };
  if (models::is<models::Resize>(node))
    return [node, shape](const Inputs& in, const ParameterStore& p) {
      return same_everywhere(in[0]) ? as_large_as(shape, one_place(in[0]))
                                    : run_alone(node, in[0], p);
    };
  if (const auto* pad = models::get_if<models::Pad>(node))
    return [node, shape, of_channels = pads_channels_only(*pad)](const Inputs& in,
                                                                 const ParameterStore& p) {
      return of_channels && same_everywhere(in[0])
                 ? as_large_as(shape, run_alone(node, one_place(in[0]), p))
                 : run_alone(node, in[0], p);
    };
  if (is_pool(node))
    return [node, shape](const Inputs& in, const ParameterStore& p) {
      return pool_rows(node, in[0], shape, p);
    };
  if (is_layer(node))
    return [node, shape, caution](const Inputs& in, const ParameterStore& p) {
      return layer_rows(node, in, shape, p, caution);
    };
  if (models::is<models::Custom>(node))  // a quantizer
    return [](const Inputs& in, const ParameterStore&) { return in[0]; };
  return nullptr;
}

Graph rows_graph(const Graph& network, const ParameterStore& parameters, Purpose purpose) {
  Graph graph = network;
  const auto shapes = models::infer_shapes(network, parameters);
  const auto consumers = network.consumers();
  const auto sources = find_sources(network);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    Node& node = graph.nodes[i];
    std::vector<bool> constants;
    for (const NodeId input : node.inputs) constants.push_back(is_constant(network, input));
    auto rule = normalized_rule(network, id, shapes);
    if (!rule) rule = operator_rule(node, sources[i] != id, constants, shapes[i]);
    const bool cautious = purpose == Purpose::ranges && is_layer(node);
    if (!rule)
      rule = rule_of(node, sources[i] != id, shapes[i],
                     cautious ? caution_for(network, consumers, id) : Caution::none);
    // BatchNorm knows its output: of its layer the shape is enough.
    if (is_layer(node) && models::following_batch_norm(network, consumers, id) >= 0)
      rule = [shape = shapes[i]](const auto&, const ParameterStore&) {
        return as_large_as(shape, at::zeros({1}));
      };
    if (rule) node.op = models::Custom{std::make_shared<RowsOp>(std::move(rule))};
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

PixelLaw pixel_law(double lo, double hi) {
  if (lo >= hi || (lo <= -0.9 && hi >= 0.9 && hi - lo <= 8)) return {};
  return {(lo + hi) / 2, (hi - lo) * (hi - lo) / 16};
}

std::vector<at::Tensor> activation_distributions(const Graph& graph,
                                                 const ParameterStore& parameters,
                                                 const std::vector<NodeId>& nodes, Purpose purpose,
                                                 PixelLaw pixels) {
  const at::NoGradGuard no_grad;
  const auto [channels, height, width] = graph.input_shape;
  const auto options = parameters.at(parameters.names().front()).options();
  const auto zero = at::zeros({1, 1, 1, 1}, options);
  const auto pixel = distribution::normal(zero.add(pixels.mean), zero.add(pixels.variance));
  const auto images = as_large_as({1, channels, height, width}, pixel);
  models::Taps taps{nodes, {}};
  models::execute(rows_graph(graph, parameters, purpose), parameters, images, &taps);
  // A parameter of a sum or product has the same value in every image.
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (is_constant(graph, nodes[i])) taps.values[i] = constant_rows(taps.values[i]);
  return taps.values;
}

std::vector<Moments> activation_moments(const Graph& graph, const ParameterStore& parameters,
                                        const std::vector<NodeId>& nodes) {
  std::vector<Moments> moments;
  for (const auto& rows : activation_distributions(graph, parameters, nodes))
    moments.push_back({distribution::mean(rows), distribution::variance(rows)});
  return moments;
}

}  // namespace zsq::quant
