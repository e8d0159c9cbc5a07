// SPDX-License-Identifier: Apache-2.0
// Divergence and agreement of one output, by its kind. Losses and measures call
// losses/divergence.h, which takes whole rows.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "models/outputs.h"

namespace zsq::losses {

// f32 [N, K] of one kind of logits, scores and values, as losses/divergence.h defines them.
at::Tensor divergence_of(models::OutputKind kind, const at::Tensor& student,
                         const at::Tensor& teacher, double tau, double divisor);
at::Tensor agreement_of(models::OutputKind kind, const at::Tensor& student,
                        const at::Tensor& teacher);
double most_frequent_share_of(models::OutputKind kind, const at::Tensor& teacher);
at::Tensor drawn_log_likelihood_of(models::OutputKind kind, const at::Tensor& outputs,
                                   const at::Generator& draws);

// The same of one output with places: f32 [N, length] -> as losses/divergence.h defines them.
at::Tensor divergence_of(const models::Output& output, const at::Tensor& student,
                         const at::Tensor& teacher, double tau, double divisor);
at::Tensor agreement_of(const models::Output& output, const at::Tensor& student,
                        const at::Tensor& teacher);
double most_frequent_share_of(const models::Output& output, const at::Tensor& teacher);
at::Tensor drawn_log_likelihood_of(const models::Output& output, const at::Tensor& outputs,
                                   const at::Generator& draws);

}  // namespace zsq::losses
