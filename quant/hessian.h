// SPDX-License-Identifier: Apache-2.0
// Layer after layer in order, a student's weights are rounded by what the layer reads
// (quant/hessian_layer.h); each layer sees what the layers before it, already rounded, hand on.
// Made images look like no photographs: they serve for how the values that a layer reads go
// together, while the means and variances of these are what BatchNorm statistics tell.
#pragma once
#include "core/observer.h"
#include "quant/student.h"

namespace zsq::quant {

struct HessianJob {
  const models::Model& teacher;
  Student& student;   // calibrated; its weights have ranges that stay
  at::Tensor images;  // f32 [N, C, H, W]
  std::int64_t batch_size = 32;
  std::int64_t memory =
      2048;  // MiB, for the values between blocks; fewer images where they need more
  std::uint64_t seed = 0;
};

// Changes latent weights, their scales, and by correct_bias() the biases or BatchNorm betas behind
// the layers. Error(stopped) where the observer asks for it: some layers are done then, some not.
void round_weights_by_hessian(const HessianJob& job, Observer& observer);

}  // namespace zsq::quant
