// SPDX-License-Identifier: Apache-2.0
// Simonyan and Zisserman, Very Deep Convolutional Networks, arXiv 1409.1556, table 1 (A, B, D, E),
// with BatchNorm after each convolution.
#include "models/architectures/registry.h"

namespace zsq::models {
namespace {

struct VggNames : Convention {
  const char *first, *second;  // linear layers before the classifier
};
// timm keeps these as convolutions over the whole map.
constexpr VggNames kVggNames[] = {{{"torchvision", "classifier.6"}, "classifier.0", "classifier.3"},
                                  {{"timm", "head.fc"}, "pre_logits.fc1", "pre_logits.fc2"}};

NodeId network(Builder& net, const std::vector<int>& convolutions) {
  constexpr std::int64_t kWidths[] = {64, 128, 256, 512, 512};
  const auto& names = net.choose(kVggNames);
  const auto module = [](int index) { return "features." + std::to_string(index); };
  auto x = net.input();
  int index = 0;
  for (std::size_t stage = 0; stage < convolutions.size(); ++stage) {
    for (int i = 0; i < convolutions[stage]; ++i, index += 3)  // ReLU is a module too
      x = net.conv_bn(x, {module(index), module(index + 1)},
                      {.out = kWidths[stage], .kernel = 3, .bias = true}, Activation::relu);
    x = net.add(module(index++), MaxPool{{2, 2}, {2, 2}}, {x});
  }
  for (const char* name : {names.first, names.second})
    x = net.activate(net.linear(x, name, 4096), Activation::relu);
  return net.classifier(x, names.classifier);
}

Architecture vgg(const char* name, std::int64_t parameters, const std::vector<int>& convolutions) {
  return {
      {name, "", parameters, 224, "Simonyan and Zisserman, arXiv 1409.1556", "torchvision, timm"},
      [convolutions](Builder& net) { return network(net, convolutions); }};
}

}  // namespace

std::vector<Architecture> vggs() {
  return {vgg("vgg11_bn", 132868840, {1, 1, 2, 2, 2}), vgg("vgg13_bn", 133053736, {2, 2, 2, 2, 2}),
          vgg("vgg16_bn", 138365992, {2, 2, 3, 3, 3}), vgg("vgg19_bn", 143678248, {2, 2, 4, 4, 4})};
}

}  // namespace zsq::models
