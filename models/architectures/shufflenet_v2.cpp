// SPDX-License-Identifier: Apache-2.0
// Ma et al., ShuffleNet V2, arXiv 1807.11164, table 5.
#include "models/architectures/registry.h"

namespace zsq::models {
namespace {

// Channels [2, C/2] become [C/2, 2].
NodeId shuffle(Builder& net, NodeId x, const std::string& name, std::int64_t side) {
  const auto half = net.channels(x) / 2;
  x = net.add(name + ".groups", Reshape{{2, half, side, side}}, {x});
  x = net.add(name + ".shuffle", Transpose{{0, 2, 1, 3, 4}}, {x});
  return net.add(name + ".channels", Reshape{{2 * half, side, side}}, {x});
}

Names layer(const std::string& branch, int index) {
  return {branch + std::to_string(index), branch + std::to_string(index + 1)};
}

// Half of the channels pass; a unit that halves the map gives both halves a branch.
NodeId unit(Builder& net, NodeId x, const std::string& name, std::int64_t out, bool halves,
            std::int64_t side) {
  const auto half = out / 2;
  const std::string other = name + ".branch1.", body = name + ".branch2.";
  NodeId left = x, right = x;
  if (halves) {
    left = net.conv_bn(x, layer(other, 0), {net.channels(x), 3, 2, net.channels(x)});
    left = net.conv_bn(left, layer(other, 2), {half}, Activation::relu);
  } else {
    left = net.add(name + ".left", Slice{1, 0, half}, {x});
    right = net.add(name + ".right", Slice{1, half, out}, {x});
  }
  right = net.conv_bn(right, layer(body, 0), {half}, Activation::relu);
  right = net.conv_bn(right, layer(body, 3), {half, 3, halves ? 2 : 1, half});
  right = net.conv_bn(right, layer(body, 5), {half}, Activation::relu);
  return shuffle(net, net.add(name + ".concat", Concat{1}, {left, right}), name, side);
}

NodeId network(Builder& net, const std::vector<std::int64_t>& widths) {
  constexpr Convention kTorchvision[] = {{"torchvision", "fc"}};
  constexpr int kUnits[] = {4, 8, 4};
  net.choose(kTorchvision);
  auto x = net.conv_bn(net.input(), {"conv1.0", "conv1.1"}, {24, 3, 2}, Activation::relu);
  x = net.max_pool(x, "maxpool");
  for (int stage = 0; stage < 3; ++stage) {
    for (int i = 0; i < kUnits[stage]; ++i) {
      const auto side = net.height(x);
      const bool halves = i == 0;
      x = unit(net, x, "stage" + std::to_string(stage + 2) + "." + std::to_string(i),
               widths[static_cast<std::size_t>(stage)], halves, halves ? (side + 1) / 2 : side);
    }
  }
  x = net.conv_bn(x, {"conv5.0", "conv5.1"}, {widths[3]}, Activation::relu);
  return net.classifier(net.add("avgpool", GlobalAvgPool{}, {x}), "fc");
}

Architecture shufflenet(const char* name, std::int64_t parameters,
                        const std::vector<std::int64_t>& widths) {
  return {{name, "", parameters, 224, "Ma et al., arXiv 1807.11164", "torchvision"},
          [widths](Builder& net) { return network(net, widths); }};
}

}  // namespace

std::vector<Architecture> shufflenets() {
  return {shufflenet("shufflenet_v2_x0_5", 1366792, {48, 96, 192, 1024}),
          shufflenet("shufflenet_v2_x1_0", 2278604, {116, 232, 464, 1024}),
          shufflenet("shufflenet_v2_x1_5", 3503624, {176, 352, 704, 1024}),
          shufflenet("shufflenet_v2_x2_0", 7393996, {244, 488, 976, 2048})};
}

}  // namespace zsq::models
