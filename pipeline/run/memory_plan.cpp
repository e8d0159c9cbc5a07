// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/error.h"
#include "models/inference.h"
#include "pipeline/images/image_job.h"
#include "pipeline/run/rewrite.h"
#include "pipeline/run/stage.h"
#include "pipeline/session/format.h"
#include "pipeline/session/process_memory.h"

namespace zsq::pipeline {
namespace {

constexpr double kMebi = 1 << 20;
constexpr std::int64_t kImagesInsteadOfGenerator = 256;
constexpr double kInference = 6;       // values of the largest size at once
constexpr double kCopiesOfImages = 3;  // of two kinds, or of two batches, and one that is made
constexpr double kLeastOfABatch = 2;

// Splitting has a backward pass; rotation sums in f64.
void add_rewrites(const models::Model& teacher, const NetworkSizes& sizes, Recipe& recipe,
                  std::vector<MemoryNeed>& needs) {
  QuantOptions& o = recipe.quantize;
  const auto add = [&](const char* stage, std::int64_t images) {
    needs.push_back({stage, sizes.alone() + static_cast<double>(images) * sizes.image,
                     sizes.outputs, "quantize.rewrite_batch_size", &o.rewrite_batch_size, 1});
  };
  if (splits_channels(teacher, recipe)) add("channel splitting", o.split_channels);
  if (rotates_bottlenecks(teacher, recipe)) add("rotation", o.rotation);
}

std::string in_words(double bytes) {
  return bytes < 1e9 ? format("%.0f MB", bytes / 1e6) : format("%.2f GB", bytes / 1e9);
}

double least_bytes(const MemoryNeed& need) {
  return need.fixed + need.each * static_cast<double>(need.least);
}

// The weights of a generator for large images, their gradients and moments may not fit by
// themselves; images that are made once take less.
void replace_generator(const models::Model& teacher, const NetworkSizes& sizes, Recipe& recipe,
                       double limit, Observer& observer) {
  if (!kFineTuning.applies(recipe, teacher) || recipe.finetune.images > 0) return;
  for (const MemoryNeed& need : kFineTuning.memory(sizes, recipe)) {
    if (need.fitting(limit) >= need.least) continue;
    recipe.finetune.images = kImagesInsteadOfGenerator;
    observer.on_message(
        LogLevel::warning,
        "fine-tuning with a generator needs about " + in_words(least_bytes(need)) +
            ", more than --memory_limit " + in_words(limit) + ": it learns from " +
            std::to_string(kImagesInsteadOfGenerator) +
            " images that are made once (finetune.images), which changes the method");
  }
}

// Likewise a generator for each batch of images.
void replace_genie(const NetworkSizes& sizes, Recipe& recipe, double limit, Observer& observer) {
  if (recipe.images.source != ImageSource::genie) return;
  const MemoryNeed need = of_optimised_images(sizes, recipe, &recipe.images.batch_size);
  if (need.fitting(limit) >= need.least) return;
  recipe.images.source = ImageSource::optimised;
  observer.on_message(LogLevel::warning,
                      "images by a generator for each batch need about " +
                          in_words(least_bytes(need)) + ", more than --memory_limit " +
                          in_words(limit) +
                          ": their pixels are optimised instead "
                          "(generate.images.source=optimised), which changes the method");
}

}  // namespace

std::vector<MemoryNeed> values_between_blocks(const char* stage, const NetworkSizes& network,
                                              Recipe& recipe, NeededSetting images,
                                              NeededSetting batch, double each) {
  constexpr std::int64_t kLeastMemory = 16;
  std::int64_t& memory = recipe.reconstruct.memory;
  const double alone = network.alone(), of_batch = kLeastOfABatch * each,
               of_images = static_cast<double>(*images.value) * network.image,
               values = std::min(static_cast<double>(memory) * kMebi,
                                 static_cast<double>(*images.value) * network.ends);
  return {{stage, alone + of_batch + kLeastMemory * kMebi, network.image, images.key, images.value},
          {stage, alone + of_batch + of_images, kMebi, "reconstruct.memory", &memory, kLeastMemory},
          {stage, alone + of_images + values, each, batch.key, batch.value,
           static_cast<std::int64_t>(kLeastOfABatch)}};
}

std::vector<MemoryNeed> memory_needs(const models::Model& teacher, const NetworkSizes& sizes,
                                     Recipe& recipe) {
  const double measuring =
      sizes.alone() + kInference * std::max(sizes.largest, models::Inference::kBytesOfLargest);
  std::vector<MemoryNeed> needs;
  add_rewrites(teacher, sizes, recipe, needs);
  if (recipe.process.agreement_images > 0)
    needs.push_back({"measuring on held-out images", measuring, kCopiesOfImages * sizes.image,
                     "process.agreement_images", &recipe.process.agreement_images, 1});
  if (!recipe.data.eval_data.empty())
    needs.push_back({"evaluation", measuring, kCopiesOfImages * sizes.image, "data.eval_batch_size",
                     &recipe.data.eval_batch_size, 1});
  std::vector<MemoryNeed> stages;
  bool learns_from_images = false;
  for (const StageKind* kind : stage_kinds_of(recipe, teacher)) {
    if (!kind->memory) continue;
    std::ranges::move(kind->memory(sizes, recipe), std::back_inserter(stages));
    learns_from_images |= kind != &kFineTuning || recipe.finetune.images > 0;
  }
  if (learns_from_images && recipe.generate.bank.empty() && !is_procedural(recipe.images.source))
    needs.push_back(of_optimised_images(sizes, recipe, &recipe.images.batch_size));
  needs.insert(needs.end(), stages.begin(), stages.end());
  return needs;
}

namespace {

// Lowers settings until each need fits; the first that does not, whatever its setting.
std::optional<MemoryNeed> lower_settings(const models::Model& teacher, const NetworkSizes& sizes,
                                         Recipe& recipe, double limit, Observer& observer) {
  replace_generator(teacher, sizes, recipe, limit, observer);
  replace_genie(sizes, recipe, limit, observer);
  // What one need has lowered, the next one is counted with.
  for (std::size_t i = 0;; ++i) {
    const auto needs = memory_needs(teacher, sizes, recipe);
    if (i == needs.size()) return {};
    const MemoryNeed& need = needs[i];
    const std::int64_t fits = need.fitting(limit);
    if (fits < need.least) return need;
    if (fits >= *need.setting) continue;
    observer.on_message(LogLevel::info, need.stage + " would need about " + in_words(need.bytes()) +
                                            ", " + need.key + " is therefore " +
                                            std::to_string(fits) + " instead of " +
                                            std::to_string(*need.setting));
    *need.setting = fits;
  }
}

// With which every need of the recipe fits, in numbers as in_words() tells them.
double limit_that_would_do(const models::Model& teacher, const NetworkSizes& sizes,
                           const Recipe& recipe, double least) {
  Observer silent;
  for (double limit = least;;) {
    const double unit = limit < 1e9 ? 1e6 : 1e7;
    limit = std::ceil(limit / unit) * unit;
    Recipe trial = recipe;
    const auto misfit = lower_settings(teacher, sizes, trial, limit, silent);
    if (!misfit) return limit;
    limit = std::max(limit + unit, least_bytes(*misfit));
  }
}

}  // namespace

void fit_into_memory(const models::Model& teacher, Recipe& recipe, Observer& observer) {
  const double limit = bytes_of(recipe.process.memory_limit);
  if (limit <= 0) return;
  const NetworkSizes sizes = sizes_of(teacher);
  const Recipe asked = recipe;
  const auto misfit = lower_settings(teacher, sizes, recipe, limit, observer);
  if (!misfit) return;
  const double least = least_bytes(*misfit);
  throw Error(ErrorCode::out_of_memory,
              misfit->stage + " needs about " + in_words(least) + " with " + misfit->key + "=" +
                  std::to_string(misfit->least) + ", the least there is; --memory_limit is " +
                  in_words(limit) + ", " +
                  in_words(limit_that_would_do(teacher, sizes, asked, least)) + " would do");
}

std::string smaller_plan(const models::Model& teacher, Recipe recipe) {
  const double given = bytes_of(recipe.process.memory_limit);
  const double limit = 0.75 * (given > 0 ? given : bytes_of({100, true}));
  std::string plan;
  for (const MemoryNeed& need : memory_needs(teacher, sizes_of(teacher), recipe)) {
    const std::int64_t value = std::min(*need.setting / 2, need.fitting(limit));
    if (value >= need.least)
      plan += (plan.empty() ? "--set " : " --set ") + need.key + "=" + std::to_string(value);
  }
  return plan;
}

}  // namespace zsq::pipeline
