// SPDX-License-Identifier: Apache-2.0
// How near a student's predictions are to its teacher's, without labels.
#pragma once
#include "generator/generator.h"
#include "models/graph.h"
#include "quant/student.h"

namespace zsq::train {

// Means over images: agreement, and divergence at temperature 1, as losses/divergence.h defines
// them for the kind of output. Of logits: the share on which both choose the same class, and
// KL(teacher
// || student) in nats per image.
struct Agreement {
  double agreement = 0, kl = 0;
  std::int64_t images = 0;
};

// f32 [N, classes], without gradients.
at::Tensor logits_of(const models::Graph& graph, const models::ParameterStore& parameters,
                     const at::Tensor& images);

Agreement compare_outputs(const models::OutputRow& row, const at::Tensor& teacher,
                          const at::Tensor& student);

Agreement measure_agreement(const models::Model& teacher, const quant::Student& student,
                            const at::Tensor& images);
Agreement measure_agreement(const at::Tensor& logits_of_teacher, const quant::Student& student,
                            const at::Tensor& images);

// Images that the generator makes as it is now, from streams that training never draws.
at::Tensor held_out_images(const generator::Generator& generator, std::int64_t images);

}  // namespace zsq::train
