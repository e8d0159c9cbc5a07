// SPDX-License-Identifier: Apache-2.0
// Huang et al., Densely Connected Convolutional Networks, arXiv 1608.06993, table 1.
#include "models/architectures/registry.h"

namespace zsq::models {
namespace {

struct Design {
  std::int64_t growth, stem;
  std::vector<int> layers;  // of each block
};

// BatchNorm, ReLU and 1x1 convolution to 4 growths; again with 3x3 to one growth.
NodeId dense_layer(Builder& net, NodeId x, const std::string& name, std::int64_t growth) {
  x = net.activate(net.batch_norm(x, name + ".norm1"), Activation::relu);
  x = net.conv_bn(x, {name + ".conv1", name + ".norm2"}, {4 * growth}, Activation::relu);
  return net.conv(x, name + ".conv2", {growth, 3});
}

NodeId transition(Builder& net, NodeId x, const std::string& name) {
  x = net.activate(net.batch_norm(x, name + ".norm"), Activation::relu);
  x = net.conv(x, name + ".conv", {net.channels(x) / 2});
  return net.add(name + ".pool", AvgPool{{2, 2}, {2, 2}}, {x});
}

NodeId network(Builder& net, const Design& design) {
  constexpr Convention kBoth[] = {{"torchvision", "classifier"}};  // timm has the same names
  net.choose(kBoth);
  auto x = net.conv_bn(net.input(), {"features.conv0", "features.norm0"}, {design.stem, 7, 2},
                       Activation::relu);
  x = net.max_pool(x, "features.pool0");
  for (std::size_t block = 1; block <= design.layers.size(); ++block) {
    const auto name = "features.denseblock" + std::to_string(block);
    for (int layer = 1; layer <= design.layers[block - 1]; ++layer) {
      const auto unit = name + ".denselayer" + std::to_string(layer);
      const auto y = dense_layer(net, x, unit, design.growth);
      x = net.add(unit + ".concat", Concat{1}, {x, y});
    }
    if (block < design.layers.size())
      x = transition(net, x, "features.transition" + std::to_string(block));
  }
  x = net.activate(net.batch_norm(x, "features.norm5"), Activation::relu);
  return net.classifier(net.add("avgpool", GlobalAvgPool{}, {x}), "classifier");
}

Architecture densenet(const char* name, std::int64_t parameters, const Design& design) {
  return {{name, "", parameters, 224, "Huang et al., arXiv 1608.06993", "torchvision, timm"},
          [design](Builder& net) { return network(net, design); }};
}

}  // namespace

std::vector<Architecture> densenets() {
  return {densenet("densenet121", 7978856, {32, 64, {6, 12, 24, 16}}),
          densenet("densenet161", 28681000, {48, 96, {6, 12, 36, 24}}),
          densenet("densenet169", 14149480, {32, 64, {6, 12, 32, 32}}),
          densenet("densenet201", 20013928, {32, 64, {6, 12, 48, 32}})};
}

}  // namespace zsq::models
