// SPDX-License-Identifier: Apache-2.0
#include "train/images/make_images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "generator/augment.h"
#include "generator/dead_leaves.h"
#include "generator/scenes.h"
#include "generator/swing.h"
#include "losses/divergence.h"
#include "parallel/ranks.h"
#include "train/images/finished_images.h"
#include "train/images/image_rate.h"
#include "train/parameters.h"
#include "train/statistics_loss.h"

namespace zsq::train {
namespace {

at::Generator image_stream(const ImageJob& job, const char* name, std::int64_t batch,
                           std::int64_t step = 0) {
  const auto number = batch * (job.options.steps + 1) + step;
  return at::detail::createCPUGenerator(
      stream_seed(job.seed, name, static_cast<std::uint64_t>(number)));
}

at::Tensor start_of(const ImageJob& job, const ImageBatch& batch) {
  if (job.options.start == ImageStart::dead_leaves)
    return procedural_images(job, batch.first, batch.size);
  const auto [channels, height, width] = job.teacher.graph.input_shape;
  const auto noise = at::randn({batch.size, channels, height, width},
                               image_stream(job, "images.start", batch.number), at::kFloat);
  const GeneratorOptions& of = job.generator;
  return of.pixel_deviation == 1 && of.pixel_mean == 0
             ? noise
             : noise.mul(of.pixel_deviation).add(of.pixel_mean);
}

// The amplitudes 1 / f^power of the frequencies f of a real transform, f32 [height, width / 2 + 1];
// over the whole plane their mean square is 1.
at::Tensor amplitudes(std::int64_t height, std::int64_t width, double power) {
  const auto frequencies = [](std::int64_t n) {
    return at::fft_fftfreq(n, 1.0 / static_cast<double>(n), at::TensorOptions(at::kFloat));
  };
  const auto f = at::hypot(frequencies(height).unsqueeze(1), frequencies(width)).clamp_min(1);
  const auto plane = f.pow(-power);
  return plane.div(plane.square().mean().sqrt()).narrow(1, 0, width / 2 + 1).contiguous();
}

// Adam's first steps are plus and minus the rate in each pixel, as good as white noise. With
// options.decay_power it moves z in x = F^-1 a F z, F the Fourier transform and a the amplitudes
// (Feature Visualization, doi 10.23915/distill.00007, "preconditioning").
class Pixels : public ImageVariables {
 public:
  // Takes `start` as its own.
  Pixels(const ImageJob& job, at::Tensor start) : job_(job), rate_(job.options) {
    hold_to_range(job, start);
    if (job.options.decay_power > 0) {
      amplitudes_ =
          amplitudes(start.size(2), start.size(3), job.options.decay_power).to(start.device());
      start = at::fft_irfft2(at::fft_rfft2(start).div(amplitudes_), sides_of(start));
    }
    variable_ = start.contiguous();
    adam_.emplace(NamedTensors{{"images", variable_}}, 0.9, 0.999);
    variable_.requires_grad_(true);
  }
  at::Tensor images() const override {
    if (!amplitudes_.defined()) return variable_;
    const auto spectrum = at::fft_rfft2(variable_).mul(amplitudes_);
    return held_to_range(job_, at::fft_irfft2(spectrum, sides_of(variable_)));
  }
  std::vector<at::Tensor> variables() const override { return {variable_}; }
  void step(const std::vector<at::Tensor>& gradients, std::int64_t step, double loss) override {
    adam_->step({gradients[0].contiguous()}, rate_.at(step) * job_.generator.pixel_deviation);
    if (!amplitudes_.defined()) hold_to_range(job_, variable_);
    rate_.saw(loss);
  }

 private:
  static at::IntArrayRef sides_of(const at::Tensor& images) { return images.sizes().slice(2); }

  const ImageJob& job_;
  at::Tensor amplitudes_;  // undefined: the variable is the pixels
  at::Tensor variable_;
  std::optional<Adam> adam_;
  ImageRate rate_;
};

class Maker {
 public:
  Maker(const ImageJob& job, Observer& observer, const ImageSink& sink, const StartVariables& start)
      : job_(job),
        start_(start),
        options_(job.options),
        observer_(observer),
        finished_(job, sink),
        pass_(job.teacher.graph, job.teacher.parameters, job.memory),
        running_(running_moments(job.teacher)),
        device_(job.teacher.parameters.device()),
        batches_((job.images + options_.batch_size - 1) / options_.batch_size),
        at_once_(options_.moments_over == MomentsOver::all_batches ? 1 : job.ranks.size()) {}

  ImageReport run() {
    const auto labels =
        bank_labels(job_.images, losses::label_count(kind(), job_.teacher.classes), job_.seed);
    const auto labels_of = [&](const ImageBatch& batch) {
      return labels.narrow(0, batch.first, batch.size);
    };
    for (std::int64_t begin = 0; begin < batches_; begin += at_once_) {
      const auto end = std::min(begin + at_once_, batches_);
      const ImageBatch own = batch_of(at_once_ > 1 ? begin + job_.ranks.rank() : begin);
      const auto made = optimise(own, labels_of(own).to(device_), end - begin);
      for (std::int64_t number = begin; number < end; ++number) {
        const ImageBatch batch = batch_of(number);
        finish(from_maker(made, batch, number - begin),
               has_labels() ? labels_of(batch) : at::Tensor());
      }
    }
    ImageReport report = finished_.report();
    report.steps = steps_;
    report.seconds = begin_.seconds();
    return report;
  }

 private:
  // Without images after the last one.
  ImageBatch batch_of(std::int64_t number) const {
    const auto last = std::min(number, batches_);
    const auto first = last * job_.images / batches_;
    const auto end = std::min(number + 1, batches_) * job_.images / batches_;
    return {number, first, end - first};
  }

  // The images of a batch, which rank `maker` has made, in the memory order that they have there: a
  // convolution's last bits depend on it.
  at::Tensor from_maker(const at::Tensor& own, const ImageBatch& batch, std::int64_t maker) const {
    if (at_once_ == 1) return own;
    const auto root = static_cast<int>(maker);
    const bool mine = root == job_.ranks.rank();
    const auto format =
        at::full({}, mine ? static_cast<std::int64_t>(own.suggest_memory_format()) : 0, at::kLong);
    job_.ranks.broadcast(format, root);
    const auto order = static_cast<at::MemoryFormat>(format.item<std::int64_t>());
    const auto [channels, height, width] = job_.teacher.graph.input_shape;
    auto images = mine ? own.contiguous(order)
                       : at::empty({batch.size, channels, height, width},
                                   at::TensorOptions(device_).memory_format(order));
    job_.ranks.broadcast(images, root);
    return images;
  }

  struct Seen {
    at::Tensor cross_entropy, statistics;
  };

  Seen look(const TeacherPass& pass, const at::Tensor& images, const at::Tensor& labels) const {
    const auto [logits, own] = pass(images, nullptr, options_.precision);
    const bool alone = finished_.moments().empty();
    const auto moments = alone ? own
                               : losses::pooled_moments(finished_.moments(), finished_.images(),
                                                        own, images.size(0));
    return {losses::label_cross_entropy(kind(), logits, labels, options_.focal_gamma),
            statistics_loss(options_.statistics, moments, running_)};
  }

  TeacherPass swung(const at::Generator& stream) const {
    return {generator::swing(job_.teacher.graph, stream), job_.teacher.parameters, job_.memory};
  }

  // `batches`: that are made at once, this one among them unless it has no images.
  at::Tensor optimise(const ImageBatch& batch, const at::Tensor& labels, std::int64_t batches) {
    const auto height = job_.teacher.graph.input_shape[1],
               width = job_.teacher.graph.input_shape[2];
    const auto made = batch.size > 0 ? start_(batch) : nullptr;
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      stop_if_asked(batch.first, step);
      steps_ += batches;
      if (!made) continue;
      const auto crops =
          generator::draw_crops(batch.size, height, width, options_,
                                image_stream(job_, "images.crop", batch.number, step));
      const auto view =
          generator::augment(made->images(), crops).contiguous(at::MemoryFormat::ChannelsLast);
      const auto show = [&](const TeacherPass& pass) { return look(pass, view, labels); };
      const auto seen = options_.swing_convolution
                            ? show(swung(image_stream(job_, "images.swing", batch.number, step)))
                            : show(pass_);
      const auto loss = seen.cross_entropy.mul(options_.cross_entropy_weight)
                            .add(seen.statistics, options_.bns_weight);
      const auto gradients = torch::autograd::grad({loss}, made->variables());
      const double value = loss.item<double>();
      require_finite(value);
      made->step(gradients, step, value);
      observer_.on_progress({"images",
                             steps_,
                             batches_ * options_.steps,
                             begin_.seconds(),
                             {{"cross_entropy", seen.cross_entropy.item<double>()},
                              {"bn_statistics", seen.statistics.item<double>()}}});
    }
    const at::NoGradGuard no_grad;
    return made ? made->images().detach() : at::Tensor();
  }

  models::OutputKind kind() const { return job_.teacher.graph.signature.kind; }
  // Values and outputs with places are of no class: such images follow the statistics alone.
  bool has_labels() const {
    return options_.cross_entropy_weight > 0 && losses::has_decisions(kind());
  }

  void finish(at::Tensor images, const at::Tensor& labels) {
    const at::NoGradGuard no_grad;
    if (options_.low_pass_cutoff > 0)
      images = generator::low_pass(images, options_.low_pass_cutoff);
    hold_to_range(job_, images);
    finished_.add(images, labels);
  }

  void stop_if_asked(std::int64_t finished, std::int64_t step) const {
    constexpr std::int64_t kAskOthersEvery = 16;
    if (parallel::several(job_.ranks) && step % kAskOthersEvery != 0) return;
    if (!parallel::on_any(job_.ranks, observer_.stop_requested())) return;
    throw Error(ErrorCode::stopped, "stopped after " + std::to_string(finished) + " of " +
                                        std::to_string(job_.images) +
                                        " images; nothing was kept, the same command starts anew");
  }

  static void require_finite(double loss) {
    if (std::isfinite(loss)) return;
    throw Error(ErrorCode::numeric_failure,
                "the loss of the images is no longer finite; lower generate.images.lr and, with "
                "generate.images.source=genie, generate.images.generator_lr");
  }

  const ImageJob& job_;
  const StartVariables& start_;
  const ImageOptions& options_;
  Observer& observer_;
  FinishedImages finished_;
  TeacherPass pass_;
  std::vector<losses::RunningMoments> running_;
  at::Device device_;
  std::int64_t batches_;
  std::int64_t at_once_;    // batches, one on each rank
  std::int64_t steps_ = 0;  // of all batches together
  Stopwatch begin_;
};

}  // namespace

at::Tensor procedural_images(const ImageJob& job, std::int64_t first, std::int64_t n) {
  const auto make = job.options.source == ImageSource::scenes ? generator::scene_images
                                                              : generator::dead_leaves_images;
  const auto shares = make(first, n, job.teacher.graph.input_shape, job.seed);
  return at::lerp(job.lowest.view({-1, 1, 1}), job.highest.view({-1, 1, 1}), shares);
}

at::Tensor bank_labels(std::int64_t images, std::int64_t classes, std::uint64_t seed) {
  std::vector<at::Tensor> rounds{at::empty({0}, at::kLong)};
  for (std::int64_t round = 0; round * classes < images; ++round) {
    const auto stream = at::detail::createCPUGenerator(
        stream_seed(seed, "images.labels", static_cast<std::uint64_t>(round)));
    rounds.push_back(at::rand({classes}, stream, at::kFloat).argsort());
  }
  return at::cat(rounds).slice(0, 0, images).contiguous();
}

ImageReport optimise_images(const ImageJob& job, Observer& observer, const ImageSink& sink,
                            const StartVariables& start) {
  return Maker(job, observer, sink, start).run();
}

ImageReport make_images(const ImageJob& job, Observer& observer, const ImageSink& sink) {
  const auto device = job.teacher.parameters.device();
  return optimise_images(job, observer, sink, [&](const ImageBatch& batch) {
    return std::make_unique<Pixels>(job, start_of(job, batch).to(device));
  });
}

}  // namespace zsq::train
