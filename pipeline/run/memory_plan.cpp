// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "models/inference.h"
#include "pipeline/run/stage.h"
#include "pipeline/session/process_memory.h"

namespace zsq::pipeline {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kInference = 6;       // values of the largest size at once
constexpr double kCopiesOfImages = 3;  // of two kinds, or of two batches, and one that is made

std::string in_words(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 1e9 ? "%.0f MB" : "%.2f GB",
                bytes / (bytes < 1e9 ? 1e6 : 1e9));
  return text;
}

}  // namespace

MemoryNeed values_between_blocks(const char* stage, const NetworkSizes& network,
                                 std::int64_t images, std::int64_t batch, Recipe& recipe) {
  return {stage,
          network.alone() + static_cast<double>(images) * network.image +
              static_cast<double>(batch) * network.outputs,
          kMebi,
          "reconstruct.memory",
          &recipe.reconstruct.memory,
          16};
}

std::vector<MemoryNeed> memory_needs(const models::Model& teacher, Recipe& recipe) {
  const NetworkSizes sizes = sizes_of(teacher);
  const double measuring =
      sizes.alone() + kInference * std::max(sizes.largest, models::Inference::kBytesOfLargest);
  std::vector<MemoryNeed> needs;
  if (recipe.process.agreement_images > 0)
    needs.push_back({"measuring on held-out images", measuring, kCopiesOfImages * sizes.image,
                     "process.agreement_images", &recipe.process.agreement_images, 1});
  if (!recipe.data.eval_data.empty())
    needs.push_back({"evaluation", measuring, kCopiesOfImages * sizes.image, "data.eval_batch_size",
                     &recipe.data.eval_batch_size, 1});
  std::vector<MemoryNeed> stages;
  for (const StageKind* kind : stage_kinds())
    if (kind->memory && kind->applies(recipe, teacher))
      stages.push_back(kind->memory(sizes, recipe));
  const bool generates =
      stages.size() == 1 && kFineTuning.applies(recipe, teacher) && recipe.finetune.images == 0;
  if (!stages.empty() && !generates && recipe.generate.bank.empty() &&
      recipe.images.source != ImageSource::dead_leaves)
    needs.push_back(of_optimised_images(sizes, &recipe.images.batch_size));
  needs.insert(needs.end(), stages.begin(), stages.end());
  return needs;
}

void fit_into_memory(const models::Model& teacher, Recipe& recipe, Observer& observer) {
  const double limit = bytes_of(recipe.process.memory_limit);
  if (limit <= 0) return;
  for (const MemoryNeed& need : memory_needs(teacher, recipe)) {
    const std::int64_t fits = need.fitting(limit);
    if (fits < need.least)
      throw Error(ErrorCode::out_of_memory,
                  need.stage + " needs about " +
                      in_words(need.fixed + need.each * static_cast<double>(need.least)) +
                      " with " + need.key + "=" + std::to_string(need.least) +
                      ", the least there is; --memory_limit is " + in_words(limit));
    if (fits >= *need.setting) continue;
    observer.on_message(LogLevel::info, need.stage + " would need about " + in_words(need.bytes()) +
                                            ", " + need.key + " is therefore " +
                                            std::to_string(fits) + " instead of " +
                                            std::to_string(*need.setting));
    *need.setting = fits;
  }
}

std::string smaller_plan(const models::Model& teacher, Recipe recipe) {
  const double given = bytes_of(recipe.process.memory_limit);
  const double limit = 0.75 * (given > 0 ? given : bytes_of({100, true}));
  std::string plan;
  for (const MemoryNeed& need : memory_needs(teacher, recipe)) {
    const std::int64_t value = std::min(*need.setting / 2, need.fitting(limit));
    if (value >= need.least)
      plan += (plan.empty() ? "--set " : " --set ") + need.key + "=" + std::to_string(value);
  }
  return plan;
}

}  // namespace zsq::pipeline
