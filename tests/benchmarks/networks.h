// SPDX-License-Identifier: Apache-2.0
// A network whose multiply-accumulates can be worked by hand: 3 x 16 x 16 images, two convolutions,
// a linear layer, 8 classes.
//   conv1: 16 * 16 outputs * 4 channels * 3 * 9 = 27,648
//   conv2:  8 *  8 outputs * 8 channels * 4 * 9 = 18,432
//   fc:                      8 classes  * 8     =     64
#pragma once
#include "models/architectures/builder.h"

namespace zsq::benchmarks {

constexpr double kConv1 = 27648, kConv2 = 18432, kFc = 64;
// Its generator: map 8 * 64 = 512, project 64 * 4 * 4 * 128 = 131,072,
//   conv1 4 * 4 pixels * 9 weights * 128 * 128 = 2,359,296,
//   conv2 8 * 8 pixels * 9 weights * 128 * 64 = 4,718,592,
//   conv3 16 * 16 pixels * 9 weights * 64 * 3 = 442,368.
constexpr double kGeneratorMap = 512;
constexpr double kGenerator = kGeneratorMap + 131072 + 2359296 + 4718592 + 442368;

inline models::Model small_network() {
  const formats::NamedArrays random;
  models::Builder net(random, {.seed = 1}, 16);
  constexpr auto kRelu = models::Activation::relu;
  auto x = net.conv_bn(net.input(), {"conv1", "bn1"}, {4, 3}, kRelu);
  x = net.conv_bn(x, {"conv2", "bn2"}, {8, 3, 2}, kRelu);
  x = net.add("pool", models::GlobalAvgPool{}, {x});
  return net.finish("small", net.classifier(x, "fc", 8));
}

}  // namespace zsq::benchmarks
