// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network_builder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace zsq::test {

using models::NodeId;

namespace {

float fan_in(const std::vector<std::int64_t>& shape) {
  return static_cast<float>(
      std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>()));
}

at::Tensor drawn(const std::vector<std::int64_t>& shape, std::mt19937_64& random, float deviation) {
  at::Tensor values = at::empty(shape);
  std::normal_distribution<float> draw(0, deviation);
  std::generate_n(values.data_ptr<float>(), values.numel(), [&] { return draw(random); });
  return values;
}

}  // namespace

at::Tensor normal(const std::vector<std::int64_t>& shape, std::uint64_t seed, float deviation) {
  std::mt19937_64 random(seed);
  return drawn(shape, random, deviation);
}

Fill varied_parameters(std::uint64_t first) {
  return [seed = first * 1000](const std::string&, const std::string& role,
                               const std::vector<std::int64_t>& shape) mutable {
    ++seed;
    if (role == "weight") {
      const float gain = shape.size() == 4 ? 2 : 1;  // a ReLU follows, or nothing
      return normal(shape, seed, std::sqrt(gain / fan_in(shape)));
    }
    if (role == "bias") return normal(shape, seed);
    if (role == "variance") return normal(shape, seed).square().add(0.5);
    if (role != "gamma") return normal(shape, seed, 0.3f);
    auto gamma = normal(shape, seed, 0.2f).add(1);
    for (std::int64_t c = 2; c < shape[0]; c += 3) gamma[c].neg_();
    return gamma;
  };
}

Fill initial_parameters(std::uint64_t seed) {
  return [random = std::mt19937_64(seed)](const std::string&, const std::string& role,
                                          const std::vector<std::int64_t>& shape) mutable {
    if (role == "weight") return drawn(shape, random, std::sqrt(2 / fan_in(shape)));
    return role == "gamma" || role == "variance" ? at::ones(shape) : at::zeros(shape);
  };
}

NetworkBuilder::NetworkBuilder(std::array<std::int64_t, 3> image, Fill fill)
    : fill_(std::move(fill)) {
  model_.graph.input_shape = image;
  model_.graph.input = op("input", models::Input{}, {});
}

NodeId NetworkBuilder::op(const std::string& name, models::Op op, std::vector<NodeId> inputs,
                          std::map<std::string, std::string> params) {
  return model_.graph.add({name, std::move(op), std::move(inputs), std::move(params)});
}

std::map<std::string, std::string> NetworkBuilder::set(const std::string& layer,
                                                       const std::string& role,
                                                       const std::vector<std::int64_t>& shape) {
  const std::string name = layer + "." + role;
  model_.parameters.set(name, fill_(name, role, shape));
  return {{role, name}};
}

NodeId NetworkBuilder::conv(const std::string& name, NodeId x, std::vector<std::int64_t> shape,
                            models::Conv2d conv, bool bias) {
  auto params = set(name, "weight", shape);
  if (bias) params.merge(set(name, "bias", {shape[0]}));
  return op(name, conv, {x}, params);
}

NodeId NetworkBuilder::conv(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                            std::int64_t kernel, std::int64_t groups, bool bias) {
  const std::int64_t pad = kernel / 2;
  return conv(name, x, {out, in / groups, kernel, kernel},
              models::Conv2d{{1, 1}, {pad, pad, pad, pad}, {1, 1}, groups}, bias);
}

NodeId NetworkBuilder::batch_norm(const std::string& name, NodeId x, std::int64_t channels,
                                  double eps) {
  std::map<std::string, std::string> params;
  for (const char* role : {"gamma", "beta", "mean", "variance"})
    params.merge(set(name, role, {channels}));
  return op(name, models::BatchNorm{eps}, {x}, params);
}

NodeId NetworkBuilder::linear(const std::string& name, NodeId x, std::int64_t in,
                              std::int64_t out) {
  auto params = set(name, "weight", {out, in});
  params.merge(set(name, "bias", {out}));
  return op(name, models::Linear{}, {x}, params);
}

NodeId NetworkBuilder::conv_bn(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                               std::int64_t kernel, std::int64_t groups) {
  return batch_norm(name + ".bn", conv(name, x, in, out, kernel, groups), out);
}

NodeId NetworkBuilder::conv_bn_relu(const std::string& name, NodeId x, std::int64_t in,
                                    std::int64_t out, std::int64_t kernel, std::int64_t groups) {
  return relu(name + ".relu", conv_bn(name, x, in, out, kernel, groups));
}

models::Model NetworkBuilder::finish(NodeId output, std::int64_t classes) {
  model_.graph.output = output;
  if (classes > 0) model_.classes = classes;
  return model_;
}

models::Model residual_network() {
  NetworkBuilder net;
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 8);
  NodeId y = net.conv_bn_relu("a", x, 8, 8);
  y = net.conv_bn("b", y, 8, 8);
  x = net.relu("relu", net.op("add", models::Add{}, {y, x}));
  x = net.conv_bn_relu("c", x, 8, 8);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, 10));
}

}  // namespace zsq::test
