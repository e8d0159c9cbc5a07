// SPDX-License-Identifier: Apache-2.0
// Layer after layer in order, a student's weights are rounded by what the layer reads
// (a RoundingMethod with round_layer); each layer sees what the layers before it, already rounded,
// pass on. Made images look like no photographs: they serve for how the values that a layer reads
// go together, while the means and variances of these are what BatchNorm statistics tell.
#pragma once
#include <functional>

#include "core/observer.h"
#include "quant/rounding/registry.h"

namespace zsq::quant {

struct RoundingJob {
  const models::Model& teacher;
  Student& student;  // calibrated; its weights have ranges that stay
  const RoundingMethod& method;
  at::Tensor images;  // f32 [N, C, H, W]
  std::int64_t batch_size = 32;
  std::int64_t memory =
      2048;  // MiB, for the values between blocks; fewer images where they need more
  std::uint64_t seed = 0;
  // Blocks that an earlier run has rounded: the student has the parameters that it had when that
  // run reported so many of them, and the result is the same as of an unbroken run.
  std::size_t blocks_done = 0;
  std::function<void(std::size_t blocks_done)> on_block_done = {};  // after each further block
};

// Changes latent weights, their scales, and where the student's options correct biases, by
// correct_bias() the biases or BatchNorm betas after the layers. A weight that layers share is
// rounded for the first of them. Error(stopped) if the observer asks for it: a block may be
// rounded in part then.
void round_layers(const RoundingJob& job, Observer& observer);

// What each layer reads, as round_layers() would have it were that layer the only one
// that is quantized: visit(index into weight_sites(job.student), moments). The student stays.
void visit_input_moments(const RoundingJob& job, Observer& observer,
                         const std::function<void(std::size_t, const InputMoments&)>& visit);

// One layer's latent weight and scale, from its weight in the teacher.
void round_site(Student& student, const models::Model& teacher, const WeightSite& site,
                const InputMoments& moments, const RoundingMethod& method);

}  // namespace zsq::quant
