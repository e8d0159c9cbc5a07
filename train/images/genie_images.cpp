// SPDX-License-Identifier: Apache-2.0
#include "train/images/genie_images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "core/seed.h"
#include "generator/genie.h"
#include "train/images/finished_images.h"
#include "train/images/image_rate.h"
#include "train/optimizers.h"

namespace zsq::train {
namespace {

using generator::GenieGenerator;

class GenieBatch : public ImageVariables {
 public:
  GenieBatch(const ImageJob& job, at::Device device, std::uint64_t batch, std::int64_t images)
      : job_(job),
        generator_(job.teacher.graph.input_shape, device, job.seed, batch),
        latents_(start(job, batch, images).to(device).requires_grad_(true)),
        weight_adam_(generator_.parameters(), 0.9, 0.999),
        latent_adam_({{"latents", latents_}}, 0.9, 0.999),
        latent_rate_(job.options) {}

  at::Tensor images() const override {
    const auto made = generator_.forward(latents_, job_.options.precision);
    const GeneratorOptions& of = job_.generator;
    const bool plain = of.pixel_mean == 0 && of.pixel_deviation == 1;
    return held_to_range(job_, plain ? made : made.mul(of.pixel_deviation).add(of.pixel_mean));
  }

  std::vector<at::Tensor> variables() const override {
    auto all = weight_adam_.parameters();
    all.push_back(latents_);
    return all;
  }

  void step(const std::vector<at::Tensor>& gradients, std::int64_t step, double loss) override {
    const auto factor = genie_rate_factor(step, job_.options.steps);
    std::vector<at::Tensor> weights;
    for (std::size_t i = 0; i + 1 < gradients.size(); ++i)
      weights.push_back(gradients[i].contiguous());
    weight_adam_.step(weights, job_.options.generator_lr * factor);
    latent_adam_.step({gradients.back().contiguous()}, latent_rate_.at(step));
    latent_rate_.saw(loss);
  }

 private:
  static at::Tensor start(const ImageJob& job, std::uint64_t batch, std::int64_t images) {
    const auto stream =
        at::detail::createCPUGenerator(stream_seed(job.seed, "genie.latents", batch));
    return at::randn({images, GenieGenerator::kLatentWidth}, stream, at::kFloat);
  }

  const ImageJob& job_;
  GenieGenerator generator_;
  at::Tensor latents_;
  Adam weight_adam_, latent_adam_;
  ImageRate latent_rate_;
};

}  // namespace

double genie_rate_factor(std::int64_t step, std::int64_t steps) {
  constexpr std::int64_t kDrops = 40;
  const std::int64_t drops = kDrops * step / steps;  // whole ones
  return std::pow(0.95, static_cast<double>(drops));
}

ImageReport make_genie_images(const ImageJob& job, Observer& observer, const ImageSink& sink) {
  const auto device = job.teacher.parameters.device();
  return optimise_images(job, observer, sink, [&](const ImageBatch& batch) {
    return std::make_unique<GenieBatch>(job, device, static_cast<std::uint64_t>(batch.number),
                                        batch.size);
  });
}

}  // namespace zsq::train
