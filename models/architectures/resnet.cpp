// SPDX-License-Identifier: Apache-2.0
// He et al., Deep Residual Learning for Image Recognition, arXiv 1512.03385: section 3.3 (ImageNet,
// with the projection shortcuts) and section 4.2 (CIFAR).
#include <functional>

#include "models/architectures/builder.h"

namespace zsq::models {
namespace {

// Where a checkpoint keeps the layers, and what differs between the publishers of the same network.
struct Layout {
  using Names = std::pair<std::string, std::string>;  // convolution, BatchNorm
  Names stem;
  std::function<std::string(int stage, int unit)> unit;           // from 1, from 0
  std::function<Names(const std::string& unit, int index)> body;  // index from 1
  std::function<Names(const std::string& unit)> projection;
  std::string classifier;
  bool padded_shortcut = false;  // option A: every other pixel, new channels zero
  bool stride_in_first = false;  // of a bottleneck; else in its 3x3 convolution
};

std::string number(int n) { return std::to_string(n); }

// torchvision
Layout torchvision_layout() {
  return {{"conv1", "bn1"},
          [](int stage, int unit) { return "layer" + number(stage) + "." + number(unit); },
          [](const std::string& unit, int i) {
            return Layout::Names{unit + ".conv" + number(i), unit + ".bn" + number(i)};
          },
          [](const std::string& unit) {
            return Layout::Names{unit + ".downsample.0", unit + ".downsample.1"};
          },
          "fc"};
}

// pytorchcv; its CIFAR networks have a plain first block.
Layout pytorchcv_layout(const std::string& stem) {
  Layout layout{{stem + ".conv", stem + ".bn"},
                [](int stage, int unit) {
                  return "features.stage" + number(stage) + ".unit" + number(unit + 1);
                },
                [](const std::string& unit, int i) {
                  const auto block = unit + ".body.conv" + number(i);
                  return Layout::Names{block + ".conv", block + ".bn"};
                },
                [](const std::string& unit) {
                  return Layout::Names{unit + ".identity_conv.conv", unit + ".identity_conv.bn"};
                },
                "output"};
  layout.stride_in_first = true;
  return layout;
}

NodeId conv_bn(Builder& net, NodeId x, const Layout::Names& names, const ConvSpec& spec) {
  return net.batch_norm(net.conv(x, names.first, spec), names.second);
}

NodeId shortcut(Builder& net, NodeId x, const Layout& layout, const std::string& unit,
                std::int64_t out, std::int64_t stride) {
  if (stride == 1 && net.channels(x) == out) return x;
  if (!layout.padded_shortcut) return conv_bn(net, x, layout.projection(unit), {out, 1, stride});
  constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
  const auto added = (out - net.channels(x)) / 2;
  x = net.add(unit + ".shortcut.rows", Slice{2, 0, kEnd, stride}, {x});
  x = net.add(unit + ".shortcut.columns", Slice{3, 0, kEnd, stride}, {x});
  return net.add(unit + ".shortcut.channels", Pad{{0, added, 0, 0}, {0, added, 0, 0}}, {x});
}

struct Design {
  std::vector<int> units;  // per stage
  std::int64_t width;      // of the first stage; each further stage doubles it
  bool bottleneck = false, imagenet = true;
  std::int64_t classes = 1000;
};

NodeId residual_unit(Builder& net, NodeId x, const Layout& layout, const std::string& name,
                     std::int64_t width, std::int64_t stride, bool bottleneck) {
  const auto out = bottleneck ? 4 * width : width;
  NodeId y = x;
  if (bottleneck) {
    const auto first = layout.stride_in_first ? stride : 1;
    y = net.relu(conv_bn(net, y, layout.body(name, 1), {width, 1, first}));
    y = net.relu(conv_bn(net, y, layout.body(name, 2), {width, 3, stride / first}));
    y = conv_bn(net, y, layout.body(name, 3), {out, 1});
  } else {
    y = net.relu(conv_bn(net, y, layout.body(name, 1), {width, 3, stride}));
    y = conv_bn(net, y, layout.body(name, 2), {out, 3});
  }
  x = shortcut(net, x, layout, name, out, stride);
  return net.relu(net.add(name + ".add", Add{}, {y, x}));
}

NodeId resnet(Builder& net, const Layout& layout, const Design& design) {
  auto x = net.input();
  const ConvSpec stem = design.imagenet ? ConvSpec{design.width, 7, 2} : ConvSpec{design.width, 3};
  x = net.relu(conv_bn(net, x, layout.stem, stem));
  if (design.imagenet) x = net.add("maxpool", MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x});
  auto width = design.width;
  for (int stage = 1; stage <= static_cast<int>(design.units.size()); ++stage, width *= 2) {
    for (int unit = 0; unit < design.units[static_cast<std::size_t>(stage) - 1]; ++unit) {
      const auto stride = stage > 1 && unit == 0 ? 2 : 1;
      x = residual_unit(net, x, layout, layout.unit(stage, unit), width, stride, design.bottleneck);
    }
  }
  x = net.add("avgpool", GlobalAvgPool{}, {x});
  return net.classifier(x, layout.classifier, design.classes);
}

Model imagenet(const formats::NamedArrays& state, std::uint64_t seed, const std::string& name,
               const Design& design) {
  Builder net(state, seed, 224);
  const auto layout = net.state_has("output.weight") ? pytorchcv_layout("features.init_block.conv")
                                                     : torchvision_layout();
  return net.finish(name, resnet(net, layout, design));
}

Model cifar(const formats::NamedArrays& state, std::uint64_t seed, const std::string& name,
            std::int64_t classes) {
  Builder net(state, seed, 32);
  Layout layout = torchvision_layout();
  if (net.state_has("output.weight")) {
    layout = pytorchcv_layout("features.init_block");
  } else if (!net.state_has("fc.weight")) {
    layout.classifier = "linear";
    layout.padded_shortcut = true;
  }
  return net.finish(name, resnet(net, layout, {{3, 3, 3}, 16, false, false, classes}));
}

}  // namespace

Model build_resnet18(const formats::NamedArrays& state, std::uint64_t seed) {
  return imagenet(state, seed, "resnet18", {{2, 2, 2, 2}, 64});
}

Model build_resnet50(const formats::NamedArrays& state, std::uint64_t seed) {
  return imagenet(state, seed, "resnet50", {{3, 4, 6, 3}, 64, true});
}

Model build_resnet20_cifar10(const formats::NamedArrays& state, std::uint64_t seed) {
  return cifar(state, seed, "resnet20_cifar10", 10);
}

Model build_resnet20_cifar100(const formats::NamedArrays& state, std::uint64_t seed) {
  return cifar(state, seed, "resnet20_cifar100", 100);
}

}  // namespace zsq::models
