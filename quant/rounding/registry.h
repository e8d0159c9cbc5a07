// SPDX-License-Identifier: Apache-2.0
// The methods that choose a student's weight codes before any training. A new one: a function in a
// pair of files of its own, its name in quant/options.h, a row in registry.cpp.
#pragma once
#include <span>
#include <string_view>

#include "cuda_kernels/weight_range.h"
#include "quant/rounding/input_moments.h"
#include "quant/student.h"

namespace zsq::quant {

struct LayerRounding {
  at::Tensor latent;  // f32, the weight's shape; nearest rounding gives the codes
  at::Tensor scale;   // of its grid, in the shape that it had
  double error = 0;   // what the method minimises, summed over the channels
};

// Rounds one layer by what it reads. `weight` f32 [out, in / groups, kh, kw] or [out, in], of the
// float network. `levels` f32 [out, 2^bits], ascending, where the format is a level table: each
// channel's codes are of these.
using RoundLayer = LayerRounding (*)(const at::Tensor& weight, const InputMoments& moments,
                                     const cuda_kernels::Grid& grid, const QuantizerSpec& spec,
                                     const GptqOptions& options, const at::Tensor& levels);

struct RoundingMethod {
  WeightRounding name;
  std::string_view title;  // for messages and reports
  // Without images, where quantizers are inserted.
  void (*round)(Student&) = nullptr;
  // With images, layer after layer (quant/rounding/round_layers.h); null: the method needs none.
  RoundLayer round_layer = nullptr;
  // What that takes for each image, in forward passes of the teacher.
  double passes_per_image = 0;

  bool needs_images() const { return round_layer != nullptr; }
};

std::span<const RoundingMethod> rounding_methods();
const RoundingMethod& rounding_method(WeightRounding name);

}  // namespace zsq::quant
