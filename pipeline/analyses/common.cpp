// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/one_hot.h>

#include "pipeline/analyses/analyses.h"

namespace zsq::pipeline {

analysis::Training AnalysisInput::training(const std::function<void(TrainOptions&)>& change) const {
  TrainOptions finetune = options.recipe.finetune;
  if (change) change(finetune);
  return analysis::Training(
      {teacher, options.recipe.quantize, options.recipe.generate, finetune, seed()});
}

std::optional<analysis::Sample> AnalysisInput::real_sample(std::int64_t images) const {
  if (real == nullptr) return std::nullopt;
  const eval::Batch batch = real->load(0, std::min(images, real->size()));
  const auto device = teacher.parameters.device();
  return analysis::sample_of(teacher, batch.images.to(device),
                             at::one_hot(batch.labels, teacher.classes).to(device, at::kFloat));
}

std::vector<LossWeight> loss_terms_of(analysis::Objective objective) {
  std::vector<LossWeight> terms;
  if (objective != analysis::Objective::cross_entropy)
    terms.push_back({LossTerm::kl_divergence, 1});
  if (objective != analysis::Objective::kl_divergence)
    terms.push_back({LossTerm::cross_entropy, 1});
  return terms;
}

}  // namespace zsq::pipeline
