// SPDX-License-Identifier: Apache-2.0
// Tan and Le, EfficientNet, arXiv 1905.11946: table 1 is B0, B1 to B4 scale its widths and depths.
// Lite networks have neither squeeze and excitation nor SiLU, but ReLU6; their first and last stage
// keep B0's depth, stem and head its width.
#include <cmath>

#include "models/architectures/inverted_residual.h"
#include "models/architectures/registry.h"

namespace zsq::models {
namespace {

struct Group {
  std::int64_t units, kernel, stride, expansion, out;
};
constexpr Group kGroups[] = {{1, 3, 1, 1, 16}, {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40},
                             {3, 3, 2, 6, 80}, {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192},
                             {1, 3, 1, 6, 320}};

struct Row {
  double width, depth;
  std::int64_t parameters, lite_parameters, image_size;
};
// Widths and depths are the same for B0 and Lite0, and so on.
constexpr Row kRows[] = {{1.0, 1.0, 5288548, 4652008, 224},
                         {1.0, 1.1, 7794184, 5416680, 240},
                         {1.1, 1.2, 9109994, 6092072, 260},
                         {1.2, 1.4, 12233232, 8197096, 300},
                         {1.4, 1.8, 19341616, 13006568, 380}};

// The multiple of 8 next to width * factor, but no more than a tenth below it.
std::int64_t scaled(std::int64_t width, double factor) {
  const double wanted = static_cast<double>(width) * factor;
  auto rounded = static_cast<std::int64_t>(wanted + 4) / 8 * 8;
  if (static_cast<double>(rounded) < 0.9 * wanted) rounded += 8;
  return rounded;
}

InvertedResidualDesign design_of(const Row& row, bool lite) {
  const auto activation = lite ? Activation::relu6 : Activation::silu;
  InvertedResidualDesign design{.stem = lite ? 32 : scaled(32, row.width),
                                .units = {},
                                .head = lite ? 1280 : scaled(1280, row.width),
                                .activation = activation};
  std::int64_t in = design.stem;
  for (const Group& group : kGroups) {
    const bool fixed = lite && (&group == std::begin(kGroups) || &group + 1 == std::end(kGroups));
    const auto units =
        fixed ? group.units
              : static_cast<std::int64_t>(std::ceil(static_cast<double>(group.units) * row.depth));
    const auto out = scaled(group.out, row.width);
    for (std::int64_t i = 0; i < units; ++i, in = out)
      design.units.push_back({group.kernel, i == 0 ? group.stride : 1, in * group.expansion, out,
                              lite ? 0 : in / 4, activation});
  }
  return design;
}

// The PyPI packages efficientnet-pytorch and efficientnet-lite-pytorch, with weights of TensorFlow.
InvertedResidualNames package_names(const char* implementation) {
  return {{implementation, "_fc", 1e-3, true},
          {"_conv_stem", "_bn0"},
          {"_conv_head", "_bn1"},
          "_blocks.#i",
          {"._expand_conv", "._bn0"},
          {"._depthwise_conv", "._bn1"},
          {"._project_conv", "._bn2"},
          "._se_reduce",
          "._se_expand"};
}

InvertedResidualNames torchvision_names() {
  return {{"torchvision", "classifier.1"},
          {"features.0.0", "features.0.1"},
          {"features.#S.0", "features.#S.1"},
          "features.#S.#u",
          {".block.#k.0", ".block.#k.1"},
          {".block.#k.0", ".block.#k.1"},
          {".block.#k.0", ".block.#k.1"},
          ".block.#k.fc1",
          ".block.#k.fc2"};
}

Architecture architecture(std::size_t index, bool lite, bool tensorflow) {
  const Row& row = kRows[index];
  std::vector<InvertedResidualNames> names{timm_names(tensorflow)};
  if (lite && !tensorflow)
    names.insert(names.begin(), package_names("efficientnet-lite-pytorch"));
  else if (!tensorflow)
    names = {torchvision_names(), timm_names(false), package_names("efficientnet-pytorch")};
  std::string implementations;
  for (const auto& one : names)
    implementations += (implementations.empty() ? "" : ", ") + std::string(one.implementation);
  return {{(tensorflow ? "tf_" : "") + std::string("efficientnet_") + (lite ? "lite" : "b") +
               std::to_string(index),
           "", lite ? row.lite_parameters : row.parameters, row.image_size,
           "Tan and Le, arXiv 1905.11946", implementations},
          [design = design_of(row, lite), names](Builder& net) {
            return inverted_residual_network(net, design, net.choose(names));
          }};
}

}  // namespace

std::vector<Architecture> efficientnets() {
  std::vector<Architecture> rows;
  for (std::size_t index = 0; index < std::size(kRows); ++index)
    for (const bool lite : {false, true})
      for (const bool tensorflow : {false, true})
        rows.push_back(architecture(index, lite, tensorflow));
  return rows;
}

}  // namespace zsq::models
