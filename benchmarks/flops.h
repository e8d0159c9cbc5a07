// SPDX-License-Identifier: Apache-2.0
// FLOPs of one image: 2 per multiply-accumulate of convolutions and linear layers, as this engine
// computes them; other operators count nothing.
#pragma once
#include "generator/generator.h"
#include "models/graph.h"

namespace zsq::benchmarks {

struct Flops {
  double forward = 0, backward = 0;
};

// Backward counts the products that a gradient needs and no other: one for the weight of a layer
// where that learns (requires grad, also after a quantizer), one for its input where something
// before it learns or the image itself wants a gradient.
Flops count_flops(const models::Graph& graph, const models::ParameterStore& parameters,
                  bool image_wants_gradient);

Flops count_flops(const generator::Generator& generator, Precision precision);

}  // namespace zsq::benchmarks
