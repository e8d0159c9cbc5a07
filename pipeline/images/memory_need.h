// SPDX-License-Identifier: Apache-2.0
// What a stage of a run is estimated to need of memory, from the shapes of a network alone.
#pragma once
#include <cstdint>
#include <string>

#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

constexpr double kFloat = 4;  // bytes

// In bytes, but for `pixels`: of the parameters, and for one image.
struct NetworkSizes {
  double parameters = 0;
  double outputs = 0, largest = 0;  // of all nodes together, and of the largest one
  double optimised = 0;             // of a step that moves its pixels (train/recomputed_blocks.h)
  double ends = 0;                  // at the widest end of a block, of both networks
  double image = 0, pixels = 0;     // the latter height * width

  double alone() const;  // libraries, and copies of the parameters
};
NetworkSizes sizes_of(const models::Model& teacher);

// Of one stage, in bytes: fixed + units * each, units being the value of a setting.
struct MemoryNeed {
  std::string stage;
  double fixed = 0, each = 0;
  std::string key;                   // of the setting
  std::int64_t *setting, least = 1;  // in the recipe that was asked about

  double bytes() const { return fixed + each * static_cast<double>(*setting); }
  // The largest value of the setting with which the stage fits; below `least` where none does.
  std::int64_t fitting(double limit) const;
};

// Bytes of a generator that learns (generator/generator.h), and of each image that it makes.
struct GeneratorNeed {
  double fixed, each;
};
GeneratorNeed generator_need(const NetworkSizes& sizes);

// Of optimising batches of `*batch_size` images.
MemoryNeed of_optimised_images(const NetworkSizes& sizes, const Recipe& recipe,
                               std::int64_t* batch_size);

// Bytes of values that a step of optimised images may keep for its backward pass.
double bytes_of_pass(const models::Model& teacher, const Recipe& recipe);

// Of `wanted` images, how many a batch of images that are optimised may have within the limit and,
// beside the network, within `bytes`; at least 2.
std::int64_t optimised_at_once(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t wanted, double bytes);

}  // namespace zsq::pipeline
