// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/error.h"
#include "models/execute.h"
#include "models/inference.h"
#include "pipeline/process_memory.h"
#include "pipeline/run/stage.h"

namespace zsq::pipeline {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kLibraries = 200e6;
constexpr double kNetworkCopies = 10;
constexpr double kInference = 6;       // values of the largest size at once
constexpr double kCopiesOfImages = 3;  // of two kinds, or of two batches, and one that is made
constexpr double kOptimised = 2.4;     // of the outputs of all nodes

double count(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, [](double product, std::int64_t side) {
    return product * static_cast<double>(side);
  });
}

NetworkSizes sizes_of(const models::Model& teacher) {
  NetworkSizes sizes;
  for (const auto& name : teacher.parameters.names())
    sizes.parameters += kFloat * static_cast<double>(teacher.parameters.at(name).numel());
  for (const auto& shape : models::infer_shapes(teacher.graph, teacher.parameters)) {
    sizes.outputs += kFloat * count(shape);
    sizes.largest = std::max(sizes.largest, kFloat * count(shape));
  }
  const auto& input = teacher.graph.input_shape;
  sizes.pixels = static_cast<double>(input[1] * input[2]);
  sizes.image = kFloat * static_cast<double>(input[0]) * sizes.pixels;
  return sizes;
}

MemoryNeed of_optimised_images(const NetworkSizes& sizes, std::int64_t* batch_size) {
  return {"optimised images",           sizes.alone(), kOptimised * sizes.outputs,
          "generate.images.batch_size", batch_size,    2};
}

std::string in_words(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 1e9 ? "%.0f MB" : "%.2f GB",
                bytes / (bytes < 1e9 ? 1e6 : 1e9));
  return text;
}

// The largest value with which the stage fits; below `least` where none does.
std::int64_t fitting(const MemoryNeed& need, double limit) {
  const double units = std::floor((limit - need.fixed) / need.each);
  return units < static_cast<double>(need.least) ? need.least - 1
                                                 : static_cast<std::int64_t>(std::min(units, 1e12));
}

}  // namespace

double NetworkSizes::alone() const { return kLibraries + kNetworkCopies * parameters; }

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
    const std::int64_t fits = fitting(need, limit);
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

std::int64_t optimised_at_once(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t wanted, double bytes) {
  const MemoryNeed need = of_optimised_images(sizes_of(teacher), &wanted);
  const double given = bytes_of(recipe.process.memory_limit), most = need.fixed + bytes;
  return std::clamp(fitting(need, given > 0 ? std::min(given, most) : most), need.least,
                    std::max(need.least, wanted));
}

std::string smaller_plan(const models::Model& teacher, Recipe recipe) {
  const double given = bytes_of(recipe.process.memory_limit);
  const double limit = 0.75 * (given > 0 ? given : bytes_of({100, true}));
  std::string plan;
  for (const MemoryNeed& need : memory_needs(teacher, recipe)) {
    const std::int64_t value = std::min(*need.setting / 2, fitting(need, limit));
    if (value >= need.least)
      plan += (plan.empty() ? "--set " : " --set ") + need.key + "=" + std::to_string(value);
  }
  return plan;
}

}  // namespace zsq::pipeline
