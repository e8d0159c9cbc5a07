// SPDX-License-Identifier: Apache-2.0
#include "tests/quant/net.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace zsq::test {

using models::NodeId;

at::Tensor normal(std::vector<std::int64_t> shape, std::uint64_t seed, float deviation) {
  at::Tensor values = at::empty(shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw(0, deviation);
  std::generate_n(values.data_ptr<float>(), values.numel(), [&] { return draw(random); });
  return values;
}

Net::Net(std::array<std::int64_t, 3> image, std::uint64_t seed) : seed_(seed * 1000) {
  model_.graph.input_shape = image;
  model_.graph.input = op("input", models::Input{}, {});
}

NodeId Net::op(const std::string& name, models::Op op, std::vector<NodeId> inputs,
               std::map<std::string, std::string> params) {
  return model_.graph.add({name, std::move(op), std::move(inputs), std::move(params)});
}

NodeId Net::conv(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                 std::int64_t kernel, std::int64_t groups, bool bias) {
  const std::int64_t fan_in = in / groups * kernel * kernel, pad = kernel / 2;
  std::map<std::string, std::string> params{{"weight", name + ".weight"}};
  model_.parameters.set(name + ".weight", normal({out, in / groups, kernel, kernel}, ++seed_,
                                                 std::sqrt(2.0f / static_cast<float>(fan_in))));
  if (bias) {
    params["bias"] = name + ".bias";
    model_.parameters.set(name + ".bias", normal({out}, ++seed_));
  }
  return op(name, models::Conv2d{{1, 1}, {pad, pad, pad, pad}, {1, 1}, groups}, {x}, params);
}

NodeId Net::batch_norm(const std::string& name, NodeId x, std::int64_t channels) {
  auto gamma = normal({channels}, ++seed_, 0.2f).add(1);
  for (std::int64_t c = 2; c < channels; c += 3) gamma[c].neg_();
  model_.parameters.set(name + ".gamma", gamma);
  model_.parameters.set(name + ".beta", normal({channels}, ++seed_, 0.3f));
  model_.parameters.set(name + ".mean", normal({channels}, ++seed_, 0.3f));
  model_.parameters.set(name + ".variance", normal({channels}, ++seed_).square().add(0.5));
  return op(name, models::BatchNorm{}, {x},
            {{"gamma", name + ".gamma"},
             {"beta", name + ".beta"},
             {"mean", name + ".mean"},
             {"variance", name + ".variance"}});
}

NodeId Net::linear(const std::string& name, NodeId x, std::int64_t in, std::int64_t out) {
  model_.parameters.set(name + ".weight", normal({out, in}, ++seed_, 1 / std::sqrt(float(in))));
  model_.parameters.set(name + ".bias", normal({out}, ++seed_));
  return op(name, models::Linear{}, {x}, {{"weight", name + ".weight"}, {"bias", name + ".bias"}});
}

NodeId Net::conv_bn(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                    std::int64_t kernel, std::int64_t groups) {
  return batch_norm(name + ".bn", conv(name, x, in, out, kernel, groups), out);
}

NodeId Net::conv_bn_relu(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                         std::int64_t kernel, std::int64_t groups) {
  return relu(name + ".relu", conv_bn(name, x, in, out, kernel, groups));
}

models::Model Net::finish(NodeId output) {
  model_.graph.output = output;
  return model_;
}

models::Model residual_network() {
  Net net;
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
