// SPDX-License-Identifier: Apache-2.0
// Held-out synthetic images: nothing learns from them; students are compared with their teacher on
// them. There are two kinds, because the KL on one kind alone misleads: a student can fit the
// images that it was made on.
//   dead_leaves  procedurally generated (generator/dead_leaves.h)
//   optimised    against the teacher from other dead leaves until it sees the label
//                (pipeline/images/distilled.h), or what a bank of `zsq generate` holds out
#pragma once
#include "core/observer.h"
#include "pipeline/quantize.h"
#include "quant/student.h"

namespace zsq::pipeline {

struct HeldOutImages {
  std::string kind;
  at::Tensor images;  // f32 [N, C, H, W] on the teacher's device
  at::Tensor logits;  // f32 [N, classes], the teacher's
};

// How many images are optimised, of process.agreement_images that are wanted, and in how many
// steps. A large network has fewer, at least 16: they are made with a fixed number of
// multiply-accumulates, so that the same network has the same images everywhere. Where no stage is
// judged by them, a quarter of that number has to do, and half of the steps where it is too small.
struct OptimisedImages {
  std::int64_t images, steps;
};
OptimisedImages optimised_images(const models::Model& teacher, const Recipe& recipe);

// process.agreement_images of each kind; empty if that is 0. Optimised ones are kept in the cache
// folder. `from_bank`: what a bank holds out; undefined: none.
std::vector<HeldOutImages> held_out_images(const models::Model& teacher, const std::string& sha256,
                                           const Recipe& recipe, const at::Tensor& from_bank,
                                           Observer& observer);

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

// Whether the divergence of `now` is smaller, and the KL on no kind more than 5 % larger: what
// learns from one kind of images fits that kind. Both have the same kinds in the same order.
bool is_better(const std::vector<SyntheticResult>& now, const std::vector<SyntheticResult>& before);

}  // namespace zsq::pipeline
