// SPDX-License-Identifier: Apache-2.0
// How near a student is to its teacher on held-out synthetic images: the measure that stages, runs
// and verdicts are judged by.
#pragma once
#include <vector>

#include "pipeline/images/held_out.h"
#include "pipeline/results.h"

namespace zsq::pipeline {

// Divergence at temperature 1 and agreement, by what the outputs mean (losses/divergence.h), for
// each kind of images; and how far the teacher's decisions vary over them.
std::vector<SyntheticResult> measure_on(const std::vector<HeldOutImages>& held_out,
                                        const models::Graph& graph,
                                        const models::ParameterStore& parameters);

// Each output of several, or of one with places (losses/divergence.h); empty for one plain row.
std::vector<OutputResult> measure_outputs(const models::OutputRow& row, const at::Tensor& teacher,
                                          const at::Tensor& student);

// The measure that stages, runs and verdicts are judged by. divergence: geometric mean of the KL
// over the kinds, so that a change counts by its ratio and neither kind outweighs the other.
// agreement: over all images. {} if there is none.
struct PooledResult {
  double divergence = 0, agreement = 0;
  std::int64_t images = 0;
};
PooledResult pool(const std::vector<SyntheticResult>& results);

// Whether the divergence of `now` is smaller. Both have the same kinds in the same order.
bool is_better(const std::vector<SyntheticResult>& now, const std::vector<SyntheticResult>& before);

// And the KL on no kind more than 5 % larger: what learns from one kind of images fits that kind.
bool is_better_on_each(const std::vector<SyntheticResult>& now,
                       const std::vector<SyntheticResult>& before);

}  // namespace zsq::pipeline
