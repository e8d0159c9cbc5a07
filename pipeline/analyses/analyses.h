// SPDX-License-Identifier: Apache-2.0
// One function for each analysis: from a network to a table and a picture.
#pragma once
#include <memory>
#include <optional>

#include "analysis/training.h"
#include "eval/evaluate.h"
#include "pipeline/analyze.h"
#include "pipeline/report/grid.h"

namespace zsq::pipeline {

struct AnalysisInput {
  const models::Model& teacher;
  const AnalyzeOptions& options;
  const eval::ImageSource* real;  // null: none given
  Observer& observer;

  std::uint64_t seed() const { return static_cast<std::uint64_t>(options.recipe.process.seed); }
  // A training by the recipe, changed by `change`.
  analysis::Training training(const std::function<void(TrainOptions&)>& change = {}) const;
  std::optional<analysis::Sample> real_sample(std::int64_t images) const;
};

struct AnalysisOutput {
  Grid table;
  std::string svg = {};
  std::vector<std::pair<std::string, double>> figures = {};
};

AnalysisOutput analyse_gradient_cosine(const AnalysisInput& input);
AnalysisOutput analyse_crossings(const AnalysisInput& input);
AnalysisOutput analyse_threshold_distance(const AnalysisInput& input);
AnalysisOutput analyse_hessian_trace(const AnalysisInput& input);
AnalysisOutput analyse_loss_surface(const AnalysisInput& input);
AnalysisOutput analyse_feature_map(const AnalysisInput& input);

// The student's training by each loss alone and by both.
std::vector<LossWeight> loss_terms_of(analysis::Objective objective);
inline constexpr analysis::Objective kObjectives[] = {analysis::Objective::cross_entropy,
                                                      analysis::Objective::both,
                                                      analysis::Objective::kl_divergence};

}  // namespace zsq::pipeline
