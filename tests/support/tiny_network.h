// SPDX-License-Identifier: Apache-2.0
// A trained classifier with BatchNorm that needs no download: a residual network of about 20,000
// weights, trained in a few seconds to name shapes that are drawn here. What quantization does to a
// trained network shows on it in seconds.
#pragma once
#include <cstdint>
#include <filesystem>

#include "models/graph.h"
#include "tests/support/shape_images.h"

namespace zsq::test {

struct TinyNetwork {
  models::Model model;
  ShapeImages test;  // 1,000 images that training never saw
};
TinyNetwork train_tiny_network(std::uint64_t seed);

// Inverted residuals as in a MobileNetV3: depthwise convolutions, HardSwish, and a gate of global
// average pool, two 1x1 convolutions and HardSigmoid (squeeze and excitation).
TinyNetwork train_tiny_mobile_network(std::uint64_t seed);

// Per cent of the images that the model names correctly.
double accuracy(const models::Model& model, const ShapeImages& data);

// ONNX with BatchNormalization kept, as an exporter in training mode writes it: opset 17, input
// "input" [N, 3, H, W] of the graph's shape, output "logits".
void save_onnx(const models::Model& model, const std::filesystem::path& path);

// npz with `images` and `labels`.
void save_npz(const ShapeImages& data, const std::filesystem::path& path);

}  // namespace zsq::test
