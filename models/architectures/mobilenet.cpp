// SPDX-License-Identifier: Apache-2.0
// Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv 1801.04381,
// table 2. Howard et al., Searching for MobileNetV3, arXiv 1905.02244, tables 1 and 2.
#include "models/architectures/inverted_residual.h"
#include "models/architectures/registry.h"

namespace zsq::models {
namespace {

constexpr auto kRelu = Activation::relu, kHardSwish = Activation::hard_swish;

InvertedResidualDesign v2_design() {
  struct Group {
    std::int64_t expansion, out, units, stride;
  };
  constexpr Group kGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  InvertedResidualDesign design{.stem = 32, .units = {}, .head = 1280};
  std::int64_t in = design.stem;
  for (const auto& group : kGroups) {
    for (std::int64_t i = 0; i < group.units; ++i, in = group.out)
      design.units.push_back({3, i == 0 ? group.stride : 1, in * group.expansion, group.out});
  }
  return design;
}

// Squeeze and excitation to a quarter of `hidden`, as a multiple of 8.
InvertedResidualDesign v3_design(bool large) {
  InvertedResidualDesign design{.stem = 16, .units = {}, .head = large ? 960 : 576};
  if (large) {
    design.units = {{3, 1, 16, 16, 0, kRelu},          {3, 2, 64, 24, 0, kRelu},
                    {3, 1, 72, 24, 0, kRelu},          {5, 2, 72, 40, 24, kRelu},
                    {5, 1, 120, 40, 32, kRelu},        {5, 1, 120, 40, 32, kRelu},
                    {3, 2, 240, 80, 0, kHardSwish},    {3, 1, 200, 80, 0, kHardSwish},
                    {3, 1, 184, 80, 0, kHardSwish},    {3, 1, 184, 80, 0, kHardSwish},
                    {3, 1, 480, 112, 120, kHardSwish}, {3, 1, 672, 112, 168, kHardSwish},
                    {5, 2, 672, 160, 168, kHardSwish}, {5, 1, 960, 160, 240, kHardSwish},
                    {5, 1, 960, 160, 240, kHardSwish}};
  } else {
    design.units = {{3, 2, 16, 16, 8, kRelu},        {3, 2, 72, 24, 0, kRelu},
                    {3, 1, 88, 24, 0, kRelu},        {5, 2, 96, 40, 24, kHardSwish},
                    {5, 1, 240, 40, 64, kHardSwish}, {5, 1, 240, 40, 64, kHardSwish},
                    {5, 1, 120, 48, 32, kHardSwish}, {5, 1, 144, 48, 40, kHardSwish},
                    {5, 2, 288, 96, 72, kHardSwish}, {5, 1, 576, 96, 144, kHardSwish},
                    {5, 1, 576, 96, 144, kHardSwish}};
  }
  design.activation = kHardSwish;
  design.gate = kRelu;
  design.hard_gate = true;
  design.hidden = large ? 1280 : 1024;
  return design;
}

std::vector<InvertedResidualNames> v2_names() {
  const InvertedResidualNames torchvision{{"torchvision", "classifier.1"},
                                          {"features.0.0", "features.0.1"},
                                          {"features.#I.0", "features.#I.1"},
                                          "features.#I",
                                          {".conv.#k.0", ".conv.#k.1"},
                                          {".conv.#k.0", ".conv.#k.1"},
                                          {".conv.#k", ".conv.#n"}};
  InvertedResidualNames pytorchcv{{"pytorchcv", "output"},
                                  {"features.init_block.conv", "features.init_block.bn"},
                                  {"features.final_block.conv", "features.final_block.bn"},
                                  "features.stage#p.unit#q",
                                  {".conv#n.conv", ".conv#n.bn"},
                                  {".conv#n.conv", ".conv#n.bn"},
                                  {".conv#n.conv", ".conv#n.bn"}};
  pytorchcv.as_conv = true;
  return {torchvision, timm_names(false), pytorchcv};
}

std::vector<InvertedResidualNames> v3_names(bool tensorflow) {
  InvertedResidualNames timm = timm_names(tensorflow);
  timm.head = {"blocks.#s.0.conv", "blocks.#s.0.bn1"};
  if (tensorflow) return {timm};
  return {{{"torchvision", "classifier.3", 1e-3},
           {"features.0.0", "features.0.1"},
           {"features.#I.0", "features.#I.1"},
           "features.#I",
           {".block.#k.0", ".block.#k.1"},
           {".block.#k.0", ".block.#k.1"},
           {".block.#k.0", ".block.#k.1"},
           ".block.#k.fc1",
           ".block.#k.fc2",
           "classifier.0"},
          timm};
}

Architecture architecture(const ArchitectureInfo& info, const InvertedResidualDesign& design,
                          const std::vector<InvertedResidualNames>& names) {
  return {info, [design, names](Builder& net) {
            return inverted_residual_network(net, design, net.choose(names));
          }};
}

}  // namespace

std::vector<Architecture> mobilenets() {
  constexpr const char* kV3 = "Howard et al., arXiv 1905.02244";
  constexpr const char* kBoth = "torchvision, timm";
  return {architecture({"mobilenet_v2", "mobilenetv2_100", 3504872, 224,
                        "Sandler et al., arXiv 1801.04381", "torchvision, timm, pytorchcv"},
                       v2_design(), v2_names()),
          architecture({"mobilenet_v3_small", "mobilenetv3_small_100", 2542856, 224, kV3, kBoth},
                       v3_design(false), v3_names(false)),
          architecture({"mobilenet_v3_large", "mobilenetv3_large_100", 5483032, 224, kV3, kBoth},
                       v3_design(true), v3_names(false)),
          architecture({"tf_mobilenetv3_small_100", "", 2542856, 224, kV3, "timm"},
                       v3_design(false), v3_names(true)),
          architecture({"tf_mobilenetv3_large_100", "", 5483032, 224, kV3, "timm"}, v3_design(true),
                       v3_names(true))};
}

}  // namespace zsq::models
