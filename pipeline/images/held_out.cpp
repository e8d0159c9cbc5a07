// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/held_out.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/seed.h"
#include "losses/divergence.h"
#include "models/load.h"
#include "pipeline/images/distilled.h"
#include "pipeline/images/image_job.h"
#include "pipeline/images/memory_need.h"
#include "pipeline/images/teacher_outputs.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kLeastImages = 16, kLeastLeaves = 32;
// For each wanted optimised image: 64 take at most 20 s on two CPU cores, unless the least number
// of them takes longer; a quarter of that where no stage is judged by them.
constexpr double kToJudge = 8e9, kToReport = 2e9;
// For each wanted dead-leaves image, which takes one forward pass of either network.
constexpr double kLeavesToReport = 1.9e8;
constexpr double kBytesAtOnce = 800e6;
// A forward pass, and a backward pass to the pixels that costs as much.
constexpr double kPassesPerStep = 2;

// process.agreement_images, or as many as have room for their outputs: maps of classes and boxes of
// many anchors are as large as activations.
std::int64_t wanted_images(const models::Model& teacher, const Recipe& recipe) {
  constexpr double kBytesOfRows = 256e6;
  constexpr std::int64_t kLeast = 4;
  const double row = 4.0 * static_cast<double>(std::max<std::int64_t>(1, teacher.classes));
  const auto room = static_cast<std::int64_t>(kBytesOfRows / row);
  return std::min(recipe.process.agreement_images, std::max(kLeast, room));
}

double multiply_accumulates_of(const models::Model& teacher) {
  const auto macs = models::multiply_accumulates(teacher);
  return std::accumulate(macs.begin(), macs.end(), 0.0);
}

// As many of the wanted images as have room, of which each takes `image` multiply-accumulates.
std::int64_t affordable(double image, std::int64_t wanted, double each, std::int64_t least) {
  const double room = each * static_cast<double>(wanted);
  return std::clamp(static_cast<std::int64_t>(room / std::max(image, 1.0)), std::min(wanted, least),
                    wanted);
}

at::Tensor optimised(const models::Model& teacher, const std::string& sha256, const Recipe& recipe,
                     Observer& observer) {
  Recipe own = load_recipe("optimised_leaves");  // the same images for every recipe
  own.data = recipe.data;
  own.model = recipe.model;
  own.quantize = recipe.quantize;
  own.images.precision = recipe.images.precision;
  const OptimisedImages wanted = optimised_images(teacher, recipe);
  own.images.steps = wanted.steps;
  const DistilledSet set{"held_out_optimised", wanted.images};
  const std::int64_t at_once =
      optimised_at_once(teacher, recipe, std::min(set.images, own.images.batch_size), kBytesAtOnce);
  const auto batches = at::divup(set.images, at_once);
  own.images.batch_size = std::max<std::int64_t>(2, at::divup(set.images, batches));
  return distilled_images(teacher, sha256, own, set, observer);
}

at::Tensor held_out_procedural(const models::Model& teacher, const Recipe& recipe, HeldOutUse use) {
  return pipeline::procedural_images(teacher, recipe, 0, leaves_to_measure(teacher, recipe, use),
                                     stream_seed(0, "held_out", 0));
}

}  // namespace

OptimisedImages optimised_images(const models::Model& teacher, const Recipe& recipe) {
  const std::int64_t wanted = wanted_images(teacher, recipe);
  const double step = kPassesPerStep * multiply_accumulates_of(teacher);
  const auto room_for = [&](std::int64_t steps, double each) {
    return affordable(static_cast<double>(steps) * step, wanted, each, kLeastImages);
  };
  const std::int64_t steps = load_recipe("optimised_leaves").images.steps;
  // A run in a hurry has stages that differ by much, which few images tell apart.
  constexpr double kHurry = 120;  // seconds
  const double budget = recipe.process.time_budget.seconds;
  const bool judges = (budget == 0 || budget >= kHurry) &&
                      (recipe.process.automatic || recipe.finetune.iterations > 0 ||
                       recipe.reconstruct.iterations > 0);
  if (judges) return {room_for(steps, kToJudge), steps};
  const std::int64_t fewer = room_for(steps, kToReport) == wanted ? steps : steps / 2;
  return {room_for(fewer, kToReport), fewer};
}

std::int64_t leaves_to_measure(const models::Model& teacher, const Recipe& recipe, HeldOutUse use) {
  const std::int64_t wanted = wanted_images(teacher, recipe);
  if (use == HeldOutUse::choices) return wanted;
  return affordable(multiply_accumulates_of(teacher), wanted, kLeavesToReport, kLeastLeaves);
}

std::vector<HeldOutImages> held_out_images(const models::Model& teacher, const std::string& sha256,
                                           const Recipe& recipe, HeldOutUse use,
                                           const at::Tensor& from_bank, Observer& observer) {
  const std::int64_t wanted = wanted_images(teacher, recipe);
  if (wanted == 0) return {};
  std::vector<HeldOutImages> kinds{
      {std::string(enum_name(procedural_source(teacher))),
       held_out_procedural(teacher, recipe, use),
       {}},
      {"optimised",
       from_bank.defined() && from_bank.size(0) > 0
           ? from_bank.narrow(0, 0, std::min(wanted, from_bank.size(0)))
           : optimised(teacher, sha256, recipe, observer),
       {}}};
  for (auto& kind : kinds) {
    kind.images = kind.images.to(teacher.parameters.device());
    kind.logits = teacher_outputs(teacher, sha256, kind.images);
  }
  return kinds;
}

}  // namespace zsq::pipeline
