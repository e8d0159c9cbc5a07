// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/calibration_set.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

#include "core/seed.h"
#include "generator/augment.h"
#include "generator/upload.h"
#include "pipeline/images/image_job.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

// Of those that the job asks for.
std::int64_t affordable_steps(const train::ImageJob& job, double seconds) {
  train::ImageJob trial = job;
  trial.options.steps = std::min<std::int64_t>(job.options.steps, 2);
  trial.images = std::min(job.images, job.options.batch_size);
  Observer silent;
  const auto tried = pipeline::make_images(trial, silent, [](const train::MadeImages&) {});
  const double all = tried.seconds / static_cast<double>(trial.options.steps) *
                     static_cast<double>(job.images) / static_cast<double>(trial.images);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / all), 1, job.options.steps);
}

at::Tensor make(train::ImageJob job, double seconds, Observer& observer) {
  const ImageMaker& maker = image_maker(job.options.source);
  if (seconds > 0 && maker.steps == ImageMaker::Steps::of_each_batch)
    job.options.steps = affordable_steps(job, seconds);
  observer.on_message(LogLevel::info, "generating " + std::to_string(job.images) + " images" +
                                          maker.in_words(job.options));
  return made_images(job, observer);
}

// The images and, after them, other views of them.
at::Tensor views_of(const at::Tensor& images, const Recipe& recipe, std::int64_t number) {
  if (number == 1) return images;  // cat would copy them
  ImageOptions options = recipe.images;
  options.augment_share = 1;
  std::vector<at::Tensor> views{images};
  for (std::int64_t view = 1; view < number; ++view) {
    const auto stream = at::detail::createCPUGenerator(
        stream_seed(static_cast<std::uint64_t>(recipe.process.seed), "reconstruct.views",
                    static_cast<std::uint64_t>(view)));
    auto seen = generator::augment(images, generator::draw_crops(images.size(0), images.size(2),
                                                                 images.size(3), options, stream));
    if (options.mixup_share + options.cutmix_share > 0) {
      const auto weights =
          generator::draw_mixture(images.size(0), images.size(2), images.size(3), options, stream);
      seen = seen.lerp(seen.roll(1, 0), generator::upload(weights, images.device()));
    }
    views.push_back(seen);
  }
  return at::cat(views);
}

}  // namespace

BankSplit split_bank(const at::Tensor& bank, const Recipe& recipe) {
  const auto n = bank.size(0);
  const auto order =
      at::randperm(n,
                   at::detail::createCPUGenerator(stream_seed(
                       static_cast<std::uint64_t>(recipe.process.seed), "reconstruct.bank", 0)),
                   at::kLong);
  const auto learn = n - std::min(recipe.process.agreement_images, n / 4);
  return {bank.index_select(0, order.slice(0, 0, learn)),
          bank.index_select(0, order.slice(0, learn))};
}

at::Tensor calibration_set(const models::Model& teacher, const Recipe& recipe,
                           const at::Tensor& bank, const WantedImages& wanted, Observer& observer) {
  const auto images =
      bank.defined() ? bank.slice(0, 0, wanted.images)
                     : make(image_job(teacher, recipe, wanted.images), wanted.seconds, observer);
  return views_of(images.to(teacher.parameters.device()), recipe, wanted.views);
}

}  // namespace zsq::pipeline
