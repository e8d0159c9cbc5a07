// SPDX-License-Identifier: Apache-2.0
// Radosavovic et al., Designing Network RegNetDesign Spaces, arXiv 2003.13678: bottleneck units
// that do not narrow, with grouped convolutions; Y has squeeze and excitation. Where torchvision
// rounds widths to groups in another way than the paper, timm calls its network "_tv".
#include "models/architectures/registry.h"
#include "models/architectures/residual.h"

namespace zsq::models {
namespace {

struct RegNetDesign {
  const char *name, *also;
  std::int64_t parameters;
  bool excites;
  std::int64_t group_width;
  int units[4];
  std::int64_t widths[4];
};

constexpr RegNetDesign kRegNets[] = {
    {"regnetx_002", "", 2684792, false, 8, {1, 1, 4, 7}, {24, 56, 152, 368}},
    {"regnetx_004", "", 5157512, false, 16, {1, 2, 7, 12}, {32, 64, 160, 384}},
    {"regnet_x_400mf", "regnetx_004_tv", 5495976, false, 16, {1, 2, 7, 12}, {32, 64, 160, 400}},
    {"regnetx_006", "", 6196040, false, 24, {1, 3, 5, 7}, {48, 96, 240, 528}},
    {"regnet_x_800mf", "regnetx_008", 7259656, false, 16, {1, 3, 7, 5}, {64, 128, 288, 672}},
    {"regnet_x_1_6gf", "regnetx_016", 9190136, false, 24, {2, 4, 10, 2}, {72, 168, 408, 912}},
    {"regnet_x_3_2gf", "regnetx_032", 15296552, false, 48, {2, 6, 15, 2}, {96, 192, 432, 1008}},
    {"regnetx_040", "", 22118248, false, 40, {2, 5, 14, 2}, {80, 240, 560, 1360}},
    {"regnetx_064", "", 26209256, false, 56, {2, 4, 10, 1}, {168, 392, 784, 1624}},
    {"regnet_x_8gf", "regnetx_080", 39572648, false, 120, {2, 5, 15, 1}, {80, 240, 720, 1920}},
    {"regnetx_120", "", 46106056, false, 112, {2, 5, 11, 1}, {224, 448, 896, 2240}},
    {"regnet_x_16gf", "regnetx_160", 54278536, false, 128, {2, 6, 13, 1}, {256, 512, 896, 2048}},
    {"regnet_x_32gf", "regnetx_320", 107811560, false, 168, {2, 7, 13, 1}, {336, 672, 1344, 2520}},
    {"regnety_002", "", 3162996, true, 8, {1, 1, 4, 7}, {24, 56, 152, 368}},
    {"regnet_y_400mf", "regnety_004", 4344144, true, 8, {1, 3, 6, 6}, {48, 104, 208, 440}},
    {"regnety_006", "", 6055160, true, 16, {1, 3, 7, 4}, {48, 112, 256, 608}},
    {"regnety_008", "", 6263168, true, 16, {1, 3, 8, 2}, {64, 128, 320, 768}},
    {"regnet_y_800mf", "regnety_008_tv", 6432512, true, 16, {1, 3, 8, 2}, {64, 144, 320, 784}},
    {"regnet_y_1_6gf", "regnety_016", 11202430, true, 24, {2, 6, 17, 2}, {48, 120, 336, 888}},
    {"regnet_y_3_2gf", "regnety_032", 19436338, true, 24, {2, 5, 13, 1}, {72, 216, 576, 1512}},
    {"regnety_040", "", 20646656, true, 64, {2, 6, 12, 2}, {128, 192, 512, 1088}},
    {"regnety_064", "", 30583252, true, 72, {2, 7, 14, 2}, {144, 288, 576, 1296}},
    {"regnety_080", "", 39180068, true, 56, {2, 4, 10, 1}, {168, 448, 896, 2016}},
    {"regnet_y_8gf", "regnety_080_tv", 39381472, true, 56, {2, 4, 10, 1}, {224, 448, 896, 2016}},
    {"regnety_120", "", 51822544, true, 112, {2, 5, 11, 1}, {224, 448, 896, 2240}},
    {"regnet_y_16gf", "regnety_160", 83590140, true, 112, {2, 4, 11, 1}, {224, 448, 1232, 3024}},
    {"regnet_y_32gf", "regnety_320", 145046770, true, 232, {2, 5, 12, 1}, {232, 696, 1392, 3712}},
};

const std::vector<ResidualNames> kNames{
    {{"torchvision", "fc"},
     {"stem.0", "stem.1"},
     "trunk_output.block#S.block#S-#u",
     {".f.#l.0", ".f.#l.1"},
     {".proj.0", ".proj.1"},
     ".f.se.fc1",
     ".f.se.fc2"},
    {{"timm", "head.fc"},
     {"stem.conv", "stem.bn"},
     "s#S.b#U",
     {".conv#n.conv", ".conv#n.bn"},
     {".downsample.conv", ".downsample.bn"},
     ".se.fc1",
     ".se.fc2"},
};

Architecture architecture(const RegNetDesign& row) {
  ResidualDesign design{.stem = 32,
                        .imagenet_stem = false,
                        .stages = {},
                        .bottleneck = true,
                        .excites = row.excites,
                        .stem_stride = 2,
                        .first_stride = 2};
  for (std::size_t i = 0; i < 4; ++i)
    design.stages.push_back({row.units[i], row.widths[i], row.widths[i], row.group_width});
  return {{row.name, row.also, row.parameters, 224, "Radosavovic et al., arXiv 2003.13678",
           "torchvision, timm"},
          [design](Builder& net) { return residual_network(net, design, net.choose(kNames)); }};
}

}  // namespace

std::vector<Architecture> regnets() {
  std::vector<Architecture> rows;
  for (const RegNetDesign& row : kRegNets) rows.push_back(architecture(row));
  return rows;
}

}  // namespace zsq::models
