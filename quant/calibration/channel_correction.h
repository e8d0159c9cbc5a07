// SPDX-License-Identifier: Apache-2.0
// Restores each channel's mean and standard deviation. With few bits small values round to zero and
// large ones are cut off, so that what a BatchNorm puts out in the student, S, is the teacher's
// value T attenuated, plus noise; through fifty layers little is left of some channels. For every
// BatchNorm in order, the ones before it already corrected, over the places of all images:
//   S' = f S + mean(T) - f mean(S),   f = (sd(T) / sd(S)) rho^(-1/4) in [0.7, 1.4],
// rho the correlation of S and T. rho^0 gives S' the deviation of T, noise included; rho^-1 undoes
// the attenuation a of S = a T + noise in full; regression of T on S, rho^1, weakens every channel
// further. Matching means alone is empirical bias correction (arXiv 1906.04721, appendix D).
#pragma once
#include "core/observer.h"
#include "quant/student.h"

namespace zsq::quant {

struct ChannelCorrectionJob {
  const models::Model& teacher;  // that the student was made of
  Student& student;              // calibrated and rounded
  at::Tensor images;             // f32 [N, C, H, W]
  std::int64_t batch_size = 16;
  std::int64_t memory = 2048;  // MiB, for the values between blocks
};

// Changes gamma and beta of the student's BatchNorm layers; ranges and codes stay. Its BatchNorm
// parameters no longer imply the distributions of its values afterwards. Error(stopped) if the
// observer asks for it.
void correct_channels(const ChannelCorrectionJob& job, Observer& observer);

}  // namespace zsq::quant
