// SPDX-License-Identifier: Apache-2.0
// Held-out synthetic images: nothing learns from them; students are compared with their teacher on
// them. There are two kinds, because the KL on one kind alone misleads: a student can fit the
// images that it was made on.
//   dead_leaves, or scenes  procedurally generated (procedural_source())
//   optimised    against the teacher from other dead leaves until it sees the label
//                (pipeline/images/distilled.h), or what a bank of `zsq generate` holds out
#pragma once
#include "core/observer.h"
#include "pipeline/results.h"
#include "quant/student.h"
#include "recipes/recipe.h"

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

// What procedural images are for. To report on a finished run, a large network has fewer than
// process.agreement_images, at least 32.
enum class HeldOutUse { choices, report };
std::int64_t leaves_to_measure(const models::Model& teacher, const Recipe& recipe, HeldOutUse use);

// process.agreement_images of each kind, or fewer (above); empty if that is 0. Optimised ones are
// kept in the cache folder. `from_bank`: what a bank holds out; undefined: none.
std::vector<HeldOutImages> held_out_images(const models::Model& teacher, const std::string& sha256,
                                           const Recipe& recipe, HeldOutUse use,
                                           const at::Tensor& from_bank, Observer& observer);

}  // namespace zsq::pipeline
