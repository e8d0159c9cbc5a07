// SPDX-License-Identifier: Apache-2.0
// What a run is estimated to need of memory, and batches and stored values that fit into
// process.memory_limit. Counted from shapes alone, so that a run that is resumed plans the same.
//
// A training step of b images, in bytes of f32:
//   L + 10 P + 4 G + b (A + 321 H W)
// L libraries, P and G the parameters of network and generator (gradients, moments, best and first
// state among the copies), A the outputs of all nodes of the network for one image, of which a
// backward pass needs about that much, and 321 H W the generator's maps. docs/performance.md
// compares this with what was measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

constexpr double kFloat = 4;  // bytes

// In bytes, but for `pixels`: of the parameters, and for one image.
struct NetworkSizes {
  double parameters = 0;
  double outputs = 0, largest = 0;  // of all nodes together, and of the largest one
  double image = 0, pixels = 0;     // the latter height * width

  double alone() const;  // libraries, and copies of the parameters
};

// Of one stage, in bytes: fixed + units * each, units being the value of a setting.
struct MemoryNeed {
  std::string stage;
  double fixed = 0, each = 0;
  std::string key;                   // of the setting
  std::int64_t *setting, least = 1;  // in the recipe that was asked about

  double bytes() const { return fixed + each * static_cast<double>(*setting); }
};

// Of a stage that keeps values between blocks in reconstruct.memory, and computes batches of
// `batch` of its images.
MemoryNeed values_between_blocks(const char* stage, const NetworkSizes& network,
                                 std::int64_t images, std::int64_t batch, Recipe& recipe);

// Of measuring, of making images, and of the stages that the recipe has (pipeline/run/stage.h).
std::vector<MemoryNeed> memory_needs(const models::Model& teacher, Recipe& recipe);

// Lowers those settings until each stage fits, with a line to the observer for each; nothing
// without a limit. Error(out_of_memory) where the smallest sizes do not fit.
void fit_into_memory(const models::Model& teacher, Recipe& recipe, Observer& observer);

// Of `wanted` images, how many a batch of images that are optimised may have within the limit and,
// beside the network, within `bytes`; at least 2.
std::int64_t optimised_at_once(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t wanted, double bytes);

// After a run was out of memory: settings with which it should fit into three quarters of what
// there was.
std::string smaller_plan(const models::Model& teacher, Recipe recipe);

}  // namespace zsq::pipeline
