// SPDX-License-Identifier: Apache-2.0
// He et al., Deep Residual Learning for Image Recognition, arXiv 1512.03385: section 3.3 (ImageNet,
// with the projection shortcuts) and section 4.2 (CIFAR).
#include "models/architectures/registry.h"
#include "models/architectures/residual.h"

namespace zsq::models {
namespace {

constexpr const char* kPaper = "He et al., arXiv 1512.03385";

ResidualNames torchvision(const char* classifier) {
  return {{"torchvision", classifier},
          {"conv1", "bn1"},
          "layer#S.#u",
          {".conv#n", ".bn#n"},
          {".downsample.0", ".downsample.1"}};
}

ResidualNames pytorchcv(const std::string& stem) {
  ResidualNames names{{"pytorchcv", "output"},
                      {stem + ".conv", stem + ".bn"},
                      "features.stage#S.unit#U",
                      {".body.conv#n.conv", ".body.conv#n.bn"},
                      {".identity_conv.conv", ".identity_conv.bn"}};
  names.stride_in_first = true;
  return names;
}

// ResNetForImageClassification.
ResidualNames transformers() {
  return {{"transformers", "classifier.1"},
          {"resnet.embedder.embedder.convolution", "resnet.embedder.embedder.normalization"},
          "resnet.encoder.stages.#s.layers.#u",
          {".layer.#k.convolution", ".layer.#k.normalization"},
          {".shortcut.convolution", ".shortcut.normalization"}};
}

// The checkpoints that the CIFAR networks are best known by.
ResidualNames padded() {
  ResidualNames names = torchvision("linear");
  names.implementation = "akamaster";
  names.padded_shortcut = true;
  return names;
}

// pytorchcv's CIFAR networks have a plain first block.
const std::vector<ResidualNames> kImageNetNames{
    torchvision("fc"), pytorchcv("features.init_block.conv"), transformers()};
const std::vector<ResidualNames> kCifarNames{padded(), torchvision("fc"),
                                             pytorchcv("features.init_block")};

ResidualDesign design_of(const std::vector<int>& units, std::int64_t width, bool bottleneck) {
  ResidualDesign design{.stem = width, .stages = {}, .bottleneck = bottleneck};
  for (const int one : units) {
    design.stages.push_back({one, width, bottleneck ? 4 * width : width});
    width *= 2;
  }
  return design;
}

Architecture imagenet(const char* name, std::int64_t parameters, const std::vector<int>& units,
                      bool bottleneck) {
  return {{name, "", parameters, 224, kPaper, "torchvision, timm, pytorchcv, transformers"},
          [design = design_of(units, 64, bottleneck)](Builder& net) {
            return residual_network(net, design, net.choose(kImageNetNames));
          }};
}

Architecture cifar(const char* name, std::int64_t parameters, std::int64_t classes) {
  ResidualDesign design = design_of({3, 3, 3}, 16, false);
  design.imagenet_stem = false;
  design.classes = classes;
  return {
      {name, "", parameters, 32, kPaper, "akamaster, torchvision, pytorchcv"},
      [design](Builder& net) { return residual_network(net, design, net.choose(kCifarNames)); }};
}

}  // namespace

std::vector<Architecture> resnets() {
  return {imagenet("resnet18", 11689512, {2, 2, 2, 2}, false),
          imagenet("resnet34", 21797672, {3, 4, 6, 3}, false),
          imagenet("resnet50", 25557032, {3, 4, 6, 3}, true),
          imagenet("resnet101", 44549160, {3, 4, 23, 3}, true),
          cifar("resnet20_cifar10", 269722, 10),
          cifar("resnet20_cifar100", 275572, 100)};
}

}  // namespace zsq::models
