// SPDX-License-Identifier: Apache-2.0
#include "train/images/make_images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/error.h"
#include "core/seed.h"
#include "core/stopwatch.h"
#include "generator/augment.h"
#include "generator/swing.h"
#include "train/images/finished_images.h"
#include "train/images/image_rate.h"
#include "train/parameters.h"

namespace zsq::train {
namespace {

class Maker {
 public:
  Maker(const ImageJob& job, Observer& observer, const ImageSink& sink)
      : job_(job),
        options_(job.options),
        observer_(observer),
        finished_(job, sink),
        pass_(job.teacher.graph, job.teacher.parameters),
        running_(running_moments(job.teacher)),
        device_(running_.front().mean.device()),
        batches_((job.images + options_.batch_size - 1) / options_.batch_size) {}

  ImageReport run() {
    const auto labels = bank_labels(job_.images, job_.teacher.classes, job_.seed);
    for (std::int64_t batch = 0; batch < batches_; ++batch) {
      const auto first = batch * job_.images / batches_;
      const auto end = (batch + 1) * job_.images / batches_;
      const auto wanted = labels.slice(0, first, end);
      finish(optimise(batch, start_of(batch, first, end - first), wanted.to(device_)), wanted);
    }
    ImageReport report = finished_.report();
    report.steps = steps_;
    report.seconds = begin_.seconds();
    return report;
  }

 private:
  struct Seen {
    at::Tensor cross_entropy, statistics;
  };

  at::Generator stream(const char* name, std::int64_t batch, std::int64_t step = 0) const {
    const auto number = batch * (options_.steps + 1) + step;
    return at::detail::createCPUGenerator(
        stream_seed(job_.seed, name, static_cast<std::uint64_t>(number)));
  }

  Seen look(const TeacherPass& pass, const at::Tensor& images, const at::Tensor& labels) const {
    const auto [logits, moments] = pass(images, nullptr, options_.precision);
    return {losses::hard_sample_cross_entropy(logits, labels, options_.focal_gamma),
            statistics_loss(options_.statistics, moments, running_)};
  }

  TeacherPass swung(const at::Generator& stream) const {
    return {generator::swing(job_.teacher.graph, stream), job_.teacher.parameters};
  }

  at::Tensor start_of(std::int64_t batch, std::int64_t first, std::int64_t n) const {
    const auto [channels, height, width] = job_.teacher.graph.input_shape;
    auto images =
        options_.start == ImageStart::dead_leaves
            ? dead_leaves(job_, first, n)
            : at::randn({n, channels, height, width}, stream("images.start", batch), at::kFloat);
    hold_to_range(job_, images);
    return images.to(device_);
  }

  at::Tensor optimise(std::int64_t batch, at::Tensor images, const at::Tensor& labels) {
    const auto n = images.size(0), height = images.size(2), width = images.size(3);
    images.requires_grad_(true);
    Adam adam({{"images", images}}, 0.9, 0.999);
    ImageRate rate(options_);
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      stop_if_asked(batch);
      const auto crops =
          generator::draw_crops(n, height, width, options_, stream("images.crop", batch, step));
      const auto view =
          generator::augment(images, crops).contiguous(at::MemoryFormat::ChannelsLast);
      const auto show = [&](const TeacherPass& pass) { return look(pass, view, labels); };
      const auto seen = options_.swing_convolution
                            ? show(swung(stream("images.swing", batch, step)))
                            : show(pass_);
      const auto loss = seen.cross_entropy.add(seen.statistics, options_.bns_weight);
      const auto gradient = torch::autograd::grad({loss}, {images})[0].contiguous();
      adam.step({gradient}, rate.at(step));
      hold_to_range(job_, images);
      const double value = loss.item<double>();
      require_finite(value);
      rate.saw(value);
      ++steps_;
      observer_.on_progress({"images",
                             steps_,
                             batches_ * options_.steps,
                             begin_.seconds(),
                             {{"cross_entropy", seen.cross_entropy.item<double>()},
                              {"bn_statistics", seen.statistics.item<double>()}}});
    }
    return images.detach();
  }

  void finish(at::Tensor images, const at::Tensor& labels) {
    const at::NoGradGuard no_grad;
    if (options_.low_pass_cutoff > 0)
      images = generator::low_pass(images, options_.low_pass_cutoff);
    hold_to_range(job_, images);
    finished_.add(images, labels);
  }

  void stop_if_asked(std::int64_t batch) const {
    if (!observer_.stop_requested()) return;
    throw Error(ErrorCode::stopped, "stopped after " +
                                        std::to_string(batch * job_.images / batches_) + " of " +
                                        std::to_string(job_.images) +
                                        " images; nothing was kept, the same command starts anew");
  }

  static void require_finite(double loss) {
    if (std::isfinite(loss)) return;
    throw Error(ErrorCode::numeric_failure,
                "the loss of the images is no longer finite; lower generate.images.lr");
  }

  const ImageJob& job_;
  const ImageOptions& options_;
  Observer& observer_;
  FinishedImages finished_;
  TeacherPass pass_;
  std::vector<losses::RunningMoments> running_;
  at::Device device_;
  std::int64_t batches_;
  std::int64_t steps_ = 0;  // of all batches together
  Stopwatch begin_;
};

}  // namespace

at::Tensor bank_labels(std::int64_t images, std::int64_t classes, std::uint64_t seed) {
  std::vector<at::Tensor> rounds{at::empty({0}, at::kLong)};
  for (std::int64_t round = 0; round * classes < images; ++round) {
    const auto stream = at::detail::createCPUGenerator(
        stream_seed(seed, "images.labels", static_cast<std::uint64_t>(round)));
    rounds.push_back(at::rand({classes}, stream, at::kFloat).argsort());
  }
  return at::cat(rounds).slice(0, 0, images).contiguous();
}

ImageReport make_images(const ImageJob& job, Observer& observer, const ImageSink& sink) {
  return Maker(job, observer, sink).run();
}

}  // namespace zsq::train
