// SPDX-License-Identifier: Apache-2.0
// Images without their high frequencies, in which synthetic images have more than photographs
// (SynQ, Kim et al. 2603.18423).
#pragma once
#include "train/step.h"

namespace zsq::train {

// The spectrum of each channel times exp(-(u^2 + v^2) / (2 cutoff^2)), with u and v in periods per
// image; the mean stays. images [N, C, H, W] f32 -> the same shape and memory order.
at::Tensor low_pass(const at::Tensor& images, double cutoff);

// A batch with such images, and what the teacher says to them: logits and its values at `features`.
// Targets stay.
Batch low_pass(const Batch& batch, double cutoff, const models::Model& teacher,
               const std::vector<models::NodeId>& features, Precision precision);

}  // namespace zsq::train
