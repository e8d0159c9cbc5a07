// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/image_job.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/registry.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "pipeline/images/memory_need.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "train/images/finished_images.h"
#include "train/images/generator_images.h"
#include "train/images/genie_images.h"

namespace zsq::pipeline {
namespace {

// What a network receives for a pixel, per channel.
at::Tensor pixel_value(const eval::Preprocessing& preprocessing, double pixel) {
  std::vector<double> values;
  for (std::size_t c = 0; c < preprocessing.mean.size(); ++c)
    values.push_back(preprocessing.value(pixel, c));
  return at::tensor(values, at::kFloat);
}

train::ImageReport make_procedural(const train::ImageJob& job, Observer& observer,
                                   const train::ImageSink& sink) {
  const Stopwatch begin;
  train::FinishedImages finished(job, sink);
  for (std::int64_t first = 0; first < job.images; first += job.options.batch_size) {
    if (observer.stop_requested())
      throw Error(ErrorCode::stopped, "stopped after " + std::to_string(first) + " of " +
                                          std::to_string(job.images) + " images; nothing was kept");
    finished.add(
        train::procedural_images(job, first, std::min(job.options.batch_size, job.images - first)));
  }
  train::ImageReport report = finished.report();
  report.seconds = begin.seconds();
  return report;
}

// Over all images of two kinds, from the mean over each.
double mean_of(double a, std::int64_t of_a, double b, std::int64_t of_b) {
  return (a * static_cast<double>(of_a) + b * static_cast<double>(of_b)) /
         static_cast<double>(of_a + of_b);
}

// What learns from one kind of images alone becomes worse on others. The BatchNorm statistics that
// it reports are of the optimised images, which are held to them.
train::ImageReport make_mixture(const train::ImageJob& job, Observer& observer,
                                const train::ImageSink& sink) {
  train::ImageJob leaves = job, optimised = job;
  leaves.options.source = ImageSource::dead_leaves;
  leaves.images = job.images / 2;
  leaves.seed = stream_seed(job.seed, "mixture", 0);  // not those that the others start from
  optimised.options.source = ImageSource::optimised;
  optimised.images = job.images - leaves.images;
  auto report = train::make_images(optimised, observer, sink);
  if (leaves.images == 0) return report;
  const auto plain = make_procedural(leaves, observer, [&](train::MadeImages made) {
    made.first += optimised.images;
    sink(made);
  });
  const auto n = report.images, m = plain.images;
  report.cross_entropy = mean_of(report.cross_entropy, n, plain.cross_entropy, m);
  report.label_agreement = mean_of(report.label_agreement, n, plain.label_agreement, m);
  report.images += m;
  report.seconds += plain.seconds;
  return report;
}

// A new one: a function, a line here, a name in generator/image_options.h, a test, a line in
// docs/method.md.
constexpr std::array kSources{
    ImageMaker{ImageSource::optimised, train::make_images, ImageMaker::Steps::of_each_batch,
               ", optimised in ", " steps"},
    ImageMaker{ImageSource::dead_leaves, make_procedural, ImageMaker::Steps::none, " (dead leaves)",
               ""},
    ImageMaker{ImageSource::generator, train::make_generator_images, ImageMaker::Steps::of_all,
               " by a generator after ", " iterations"},
    ImageMaker{ImageSource::genie, train::make_genie_images, ImageMaker::Steps::of_each_batch,
               ", with a generator for each batch, in ", " steps"},
    ImageMaker{ImageSource::mixture, make_mixture, ImageMaker::Steps::of_each_batch,
               ", half of them dead leaves, half optimised in ", " steps", /*parts=*/2},
    ImageMaker{ImageSource::scenes, make_procedural, ImageMaker::Steps::none,
               " (dead leaves and objects)", ""},
};

}  // namespace

bool is_procedural(ImageSource source) {
  return image_maker(source).steps == ImageMaker::Steps::none;
}

std::int64_t ImageMaker::passes(const ImageOptions& options, std::int64_t images) const {
  if (steps == Steps::none) return 0;
  return options.steps * (steps == Steps::of_all ? options.batch_size : images / parts);
}

std::string ImageMaker::in_words(const ImageOptions& options) const {
  return how + (steps == Steps::none ? "" : std::to_string(options.steps)) + unit;
}

const ImageMaker& image_maker(ImageSource name) {
  return row_of(kSources, name, "pipeline/images/image_job.cpp");
}

train::ImageJob image_job(const models::Model& teacher, const Recipe& recipe, std::int64_t images) {
  train::ImageJob job{teacher, recipe.images, images,
                      static_cast<std::uint64_t>(recipe.process.seed)};
  job.generator = recipe.generate;
  job.memory = bytes_of_pass(teacher, recipe);
  scale_pixels(recipe.quantize, job.generator);
  if (!eval::is_given(recipe.data)) {
    const QuantOptions& q = recipe.quantize;
    const bool known = q.image_lo < q.image_hi;
    const bool needs_range = is_procedural(recipe.images.source) ||
                             recipe.images.source == ImageSource::mixture ||
                             recipe.images.start == ImageStart::dead_leaves;
    if (!known && !needs_range) return job;
    const auto channels = teacher.graph.input_shape[0];
    job.lowest = at::full({channels}, known ? q.image_lo : -2.0, at::kFloat);
    job.highest = at::full({channels}, known ? q.image_hi : 2.0, at::kFloat);
    return job;
  }
  const eval::Preprocessing preprocessing = preprocessing_of(teacher, recipe.data);
  job.lowest = pixel_value(preprocessing, 0);
  job.highest = pixel_value(preprocessing, 255);
  return job;
}

train::ImageReport make_images(const train::ImageJob& job, Observer& observer,
                               const train::ImageSink& sink) {
  return image_maker(job.options.source).make(job, observer, sink);
}

at::Tensor made_images(const train::ImageJob& job, Observer& observer) {
  if (is_procedural(job.options.source))  // needs nothing of the teacher
    return train::procedural_images(job, 0, job.images);
  std::vector<at::Tensor> batches;
  pipeline::make_images(job, observer,
                        [&](const train::MadeImages& made) { batches.push_back(made.images); });
  return at::cat(batches);
}

ImageSource procedural_source(const models::Model& teacher) {
  const bool places =
      std::ranges::any_of(teacher.graph.signature.kind.outputs(), &models::Output::has_places);
  return places ? ImageSource::scenes : ImageSource::dead_leaves;
}

at::Tensor procedural_images(const models::Model& teacher, const Recipe& recipe, std::int64_t first,
                             std::int64_t n, std::uint64_t seed) {
  Recipe own = recipe;
  own.images.source = procedural_source(teacher);
  train::ImageJob job = image_job(teacher, own, n);
  job.seed = seed;
  return train::procedural_images(job, first, n).to(teacher.parameters.device());
}

}  // namespace zsq::pipeline
