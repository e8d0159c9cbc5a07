// SPDX-License-Identifier: Apache-2.0
// What a run is estimated to need of memory, and batches and stored values that fit into
// process.memory_limit. Counted from shapes alone, so that a run that is resumed plans the same.
//
// A training step of b images, in bytes of f32:
//   L + 10 P + 4 G + b (A + 321 H W)
// L libraries, P and G the parameters of network and generator (gradients, moments, best and first
// state among the copies), A the outputs of all nodes of the network for one image, of which a
// backward pass needs about that much, and 321 H W the generator's maps. Where no gradient is
// needed, an image takes a multiple of the largest output. docs/performance.md compares this with
// what was measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/observer.h"
#include "models/graph.h"
#include "pipeline/images/memory_need.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// A setting of a recipe.
struct NeededSetting {
  const char* key;
  std::int64_t* value;
};

// Of a stage that works on `images`, keeps their values between blocks in reconstruct.memory, and
// computes `batch` of them at a time, each of which takes `each` bytes. One need a setting: of the
// images, of reconstruct.memory and of the batch, each beside what the others need at least.
std::vector<MemoryNeed> values_between_blocks(const char* stage, const NetworkSizes& network,
                                              Recipe& recipe, NeededSetting images,
                                              NeededSetting batch, double each);

// Of rewriting the network, of measuring, of making images, and of the stages that the recipe has
// (pipeline/run/stage.h), in the order in which settings are lowered.
// `sizes`: of the teacher (sizes_of), which are worth counting once.
std::vector<MemoryNeed> memory_needs(const models::Model& teacher, const NetworkSizes& sizes,
                                     Recipe& recipe);

// Lowers those settings until each stage fits, with a line to the observer for each; nothing
// without a limit. Error(out_of_memory) where the smallest sizes do not fit.
void fit_into_memory(const models::Model& teacher, Recipe& recipe, Observer& observer);

// After a run was out of memory: settings with which it should fit into three quarters of what
// there was.
std::string smaller_plan(const models::Model& teacher, Recipe recipe);

}  // namespace zsq::pipeline
