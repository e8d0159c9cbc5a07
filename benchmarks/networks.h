// SPDX-License-Identifier: Apache-2.0
// Networks to time without a file. Weights are random, and the running statistics of BatchNorm are
// those of one batch of noise, so that activations have the scale that a trained network gives
// them.
#pragma once
#include "models/graph.h"

namespace zsq::benchmarks {

// A built-in architecture; image_size 0: its own.
models::Model built_in(const std::string& architecture, std::int64_t image_size,
                       std::uint64_t seed);

// The CIFAR form of ResNet (arXiv 1512.03385, section 4.2) with projection shortcuts: three stages
// of `units` blocks, `width` channels in the first; 6 units + 2 layers. 10 classes.
models::Model residual_network(std::int64_t width, std::int64_t units, std::int64_t image_size,
                               std::uint64_t seed);

// Writes the biased moments of one batch of normal noise into the mean and variance of each
// BatchNorm, layer after layer.
void take_statistics_from_noise(models::Model& model, std::uint64_t seed);

}  // namespace zsq::benchmarks
