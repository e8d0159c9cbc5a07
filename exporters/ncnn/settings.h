// SPDX-License-Identifier: Apache-2.0
// Numbers of ncnn's settings that several files here use ("operation param weight table").
#pragma once
#include <cstdint>

namespace zsq::exporters::ncnn {

// Of Convolution, ConvolutionDepthWise and InnerProduct.
constexpr int kInt8Scales = 8, kActivation = 9, kActivationValues = 10;
constexpr std::int64_t kReluActivation = 1, kClipActivation = 3;
// Values of kInt8Scales: a scale per output channel. To both 100 are added where the layer's output
// is codes, too.
constexpr std::int64_t kScalesOfChannels = 2, kScalesOfGroups = 1, kGivesCodes = 100;
// Of every layer: what it does not use.
constexpr int kFeatureMask = 31;
constexpr std::int64_t kNoWinograd = 64;

}  // namespace zsq::exporters::ncnn
