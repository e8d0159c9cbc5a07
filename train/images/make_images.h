// SPDX-License-Identifier: Apache-2.0
// Images optimised against the teacher, a batch at a time: the one loop over the steps, whatever
// the images are computed of, and that of plain pixels (ZeroQ 2001.00281, IntraQ 2111.09136, HAST
// 2303.13826). Prints nothing; reports to an Observer.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "core/observer.h"
#include "generator/image_options.h"
#include "generator/options.h"
#include "models/graph.h"
#include "parallel/communicator.h"

namespace zsq::train {

struct ImageJob {
  const models::Model& teacher;
  ImageOptions options;
  std::int64_t images = 0;
  std::uint64_t seed = 0;
  at::Tensor lowest = {}, highest = {};  // f32 [C], what a pixel can be; undefined: any value
  // For images of a generator (train/images/generator_images.h). All images start from its mean and
  // deviation of pixels, and the rate of optimised ones is a multiple of that deviation.
  GeneratorOptions generator = {};
  // Bytes of values that a step may keep for its backward pass (train/teacher_pass.h); 0: any.
  double memory = 0;
  // They make images together, all with equal jobs; each gets all images, which are those of one.
  parallel::Communicator& ranks = parallel::current();
};

// On the CPU.
struct MadeImages {
  std::int64_t first = 0;  // number of the first one
  at::Tensor images;       // f32 [n, C, H, W], as the teacher takes them
  at::Tensor labels;       // int64 [n]
  // int64 [n]: of a superposed image the second class, of others -1; undefined: none is superposed.
  at::Tensor second_labels;
  at::Tensor logits;  // f32 [n, classes], the teacher's
};
using ImageSink = std::function<void(const MadeImages&)>;

// Of the finished images.
struct ImageReport {
  std::int64_t images = 0, steps = 0;  // steps: of all batches together
  double cross_entropy = 0;            // in nats, mean
  // The BatchNorm-statistics loss per batch, mean; with moments_over=all_batches of all images.
  double batch_norm_statistics = 0;
  double label_agreement = 0;  // share whose label the teacher sees
  double seconds = 0;
};

// The labels of a bank, int64 [images]: every class as often as any other (give or take one), in an
// order drawn again for each round through the classes.
at::Tensor bank_labels(std::int64_t images, std::int64_t classes, std::uint64_t seed);

// Scenes if that is the job's source, else dead leaves, between job.lowest and job.highest, which
// have to be given: f32 [n, C, H, W], images first to first + n - 1 of the job's seed.
at::Tensor procedural_images(const ImageJob& job, std::int64_t first, std::int64_t n);

// What the gradient moves to make the images of one batch.
class ImageVariables {
 public:
  virtual ~ImageVariables() = default;
  // f32 [n, C, H, W], within what a pixel can be; differentiable in variables().
  virtual at::Tensor images() const = 0;
  virtual std::vector<at::Tensor> variables() const = 0;
  // One update from the gradients of variables(); `loss` is the value that they belong to.
  virtual void step(const std::vector<at::Tensor>& gradients, std::int64_t step, double loss) = 0;
};
// Images first to first + size - 1 of a job.
struct ImageBatch {
  std::int64_t number = 0, first = 0, size = 0;
};
// Before the first step.
using StartVariables = std::function<std::unique_ptr<ImageVariables>(const ImageBatch&)>;

// Per batch, job.options.steps updates of what `start` gives on
//   c mean((1 - p_y)^gamma CE(T(aug(x)), y)) + lambda L_BNS(T, aug(x)),
// c and lambda the weights of the two terms; then the low-pass, if any. Each finished batch goes to
// `sink` and is forgotten; where c is 0, labels are what the teacher predicts. N is split into
// batches of nearly equal size, batch_size at most; a batch depends on (seed, its number, its size)
// only, or with moments_over=all_batches on the batches before it as well: L_BNS then is of the
// moments of all finished images and the batch together (losses::pooled_moments), so that the whole
// set has the stored statistics and not each batch. That is the purpose of DGH (2410.22110), which
// optimises all batches in turns. Several ranks take turns with whole batches, so that each batch
// has the same bits as on one; with moments_over=all_batches each rank makes all. Error(stopped) if
// the observer asks for it; Error(numeric_failure) if the loss is not finite.
ImageReport optimise_images(const ImageJob& job, Observer& observer, const ImageSink& sink,
                            const StartVariables& start);

// The same of pixels that start from N(0, 1), by the mean and deviation of pixels, or from dead
// leaves, follow Adam(0.9, 0.999) and are held to what a pixel can be after each step. With
// options.decay_power d > 0 Adam moves z in
//   x = clamp(F^-1 (a F z)),   a = max(f, 1)^-d / RMS,   f in periods per image,
// F the two-dimensional Fourier transform: its steps in single pixels are white noise, which no
// photograph has (Olah, Mordvintsev, Schubert: Feature Visualization, doi 10.23915/distill.00007).
ImageReport make_images(const ImageJob& job, Observer& observer, const ImageSink& sink);

}  // namespace zsq::train
