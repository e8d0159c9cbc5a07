// SPDX-License-Identifier: Apache-2.0
// Which tensors of teacher, student and generator training reads, trains and restores.
#pragma once
#include "losses/losses.h"
#include "quant/student.h"
#include "train/optimizers.h"

namespace zsq::train {

// In the order of models::batch_norm_inputs.
std::vector<losses::RunningMoments> running_moments(const models::Model& teacher);

// BatchNorm gamma and beta, biases of convolutions and linear layers.
NamedTensors affine_parameters(const quant::Student& student);

// In the same order, what a change of each is measured by: of gamma and beta the size of gamma,
// which is the deviation of the channel; of a bias the root mean square of its values.
std::vector<at::Tensor> affine_units(const quant::Student& student);

// Those that require a gradient.
NamedTensors trainable(const NamedTensors& tensors);

// Copies `saved` into the tensors of `state`; Error(bad_input) unless names and shapes are the
// same.
void copy_state(const NamedTensors& state, const NamedTensors& saved);

// Activation grids exist only after calibration: puts those of `saved` ("student/...") that the
// store lacks into it.
void restore_ranges(quant::Student& student, const NamedTensors& saved);

}  // namespace zsq::train
