// SPDX-License-Identifier: Apache-2.0
// Qimera's generator (arXiv 2111.02625) on the GDFQ network (2003.03603): class embeddings + noise,
// normalised, mapped to the latent, superposed; linear to 128 x (H/4)^2; two x2 stages; tanh; BN.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "generator/options.h"
#include "models/graph.h"

namespace zsq::generator {

// One draw. A single sample has weight 1 on its first label and 0 on the rest.
struct Draw {
  at::Tensor labels;   // int64 [N, K]; distinct within a row
  at::Tensor weights;  // f32 [N, K], rows sum to 1
  at::Tensor noise;    // f32 [N, K, feature width]
  at::Tensor targets;  // f32 [N, classes], rows sum to 1
};

class Generator {
 public:
  // Widths, classes and image size come from the teacher; initial weights from stream_seed(seed, ...).
  // Error(unsupported_model) where the teacher has no last linear layer or an image size that is not a
  // multiple of 4.
  Generator(const models::Model& teacher, const GeneratorOptions& options, std::uint64_t seed);

  // The draw of iteration `step`: depends on (seed, step, n) only.
  Draw draw(std::int64_t n, std::uint64_t step) const;

  // Images [N, C, H, W], normalised like the teacher's input; training-mode BatchNorm.
  at::Tensor forward(const Draw& draw) const;

  // Trainable tensors and buffers by name, for the optimizer and checkpoints.
  std::vector<std::pair<std::string, at::Tensor>> parameters() const;
  void load(const std::vector<std::pair<std::string, at::Tensor>>& state);

 private:
  GeneratorOptions options_;
  std::uint64_t seed_;
  models::ParameterStore store_;
  std::int64_t classes_ = 0, feature_width_ = 0, latent_width_ = 0, channels_ = 3, height_ = 0,
               width_ = 0;
};

}  // namespace zsq::generator
