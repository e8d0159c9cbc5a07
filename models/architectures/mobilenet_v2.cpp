// SPDX-License-Identifier: Apache-2.0
// Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv 1801.04381,
// table 2.
#include "models/architectures/builder.h"

namespace zsq::models {
namespace {

struct Group {
  std::int64_t expansion, out, units, stride;
};
constexpr Group kGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

using Names = std::pair<std::string, std::string>;  // convolution, BatchNorm

struct UnitNames {
  std::string unit;
  Names expand, depthwise, project;
};

UnitNames torchvision_unit(std::int64_t index, bool expands) {
  const auto unit = "features." + std::to_string(index + 1);
  const auto block = unit + ".conv.";
  const auto pair = [&](int i) {
    return Names{block + std::to_string(i) + ".0", block + std::to_string(i) + ".1"};
  };
  const int project = expands ? 2 : 1;
  return {unit,
          pair(0),
          pair(expands ? 1 : 0),
          {block + std::to_string(project), block + std::to_string(project + 1)}};
}

// Its stages end where the map is halved.
UnitNames pytorchcv_unit(std::int64_t index) {
  constexpr std::int64_t kUnits[] = {1, 2, 3, 7, 4};
  std::size_t stage = 0;
  while (index >= kUnits[stage]) index -= kUnits[stage++];
  const auto unit =
      "features.stage" + std::to_string(stage + 1) + ".unit" + std::to_string(index + 1);
  const auto pair = [&](int i) {
    const auto block = unit + ".conv" + std::to_string(i);
    return Names{block + ".conv", block + ".bn"};
  };
  return {unit, pair(1), pair(2), pair(3)};
}

NodeId conv_bn(Builder& net, NodeId x, const Names& names, const ConvSpec& spec) {
  return net.batch_norm(net.conv(x, names.first, spec), names.second);
}

NodeId inverted_residual(Builder& net, NodeId x, const UnitNames& names, bool expands,
                         const Group& group, std::int64_t stride) {
  auto y = x;
  const auto hidden = net.channels(x) * group.expansion;
  if (expands) y = net.relu6(conv_bn(net, y, names.expand, {hidden}));
  y = net.relu6(conv_bn(net, y, names.depthwise, {hidden, 3, stride, hidden}));
  y = conv_bn(net, y, names.project, {group.out});
  const bool residual = stride == 1 && net.channels(x) == group.out;
  return residual ? net.add(names.unit + ".add", Add{}, {y, x}) : y;
}

}  // namespace

Model build_mobilenet_v2(const formats::NamedArrays& state, std::uint64_t seed) {
  Builder net(state, seed, 224);
  // pytorchcv expands the first unit too (by 1), and its classifier is a convolution without bias.
  const bool pytorchcv = net.state_has("output.weight");
  const auto names = [&](const char* theirs, const char* torchvision) {
    return pytorchcv ? Names{theirs + std::string(".conv"), theirs + std::string(".bn")}
                     : Names{torchvision + std::string(".0"), torchvision + std::string(".1")};
  };
  auto x =
      net.relu6(conv_bn(net, net.input(), names("features.init_block", "features.0"), {32, 3, 2}));
  std::int64_t index = 0;
  for (const auto& group : kGroups) {
    for (std::int64_t i = 0; i < group.units; ++i, ++index) {
      const bool expands = pytorchcv || group.expansion > 1;
      const auto unit = pytorchcv ? pytorchcv_unit(index) : torchvision_unit(index, expands);
      x = inverted_residual(net, x, unit, expands, group, i == 0 ? group.stride : 1);
    }
  }
  x = net.relu6(conv_bn(net, x, names("features.final_block", "features.18"), {1280}));
  x = net.add("avgpool", GlobalAvgPool{}, {x});
  x = net.classifier(x, pytorchcv ? "output" : "classifier.1", 1000, pytorchcv);
  return net.finish("mobilenet_v2", x);
}

}  // namespace zsq::models
