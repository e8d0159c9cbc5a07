// SPDX-License-Identifier: Apache-2.0
#include "generator/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/error.h"
#include "core/seed.h"
#include "cuda_kernels/image_conv.h"
#include "cuda_kernels/upsampled_conv.h"
#include "generator/layers.h"
#include "models/classifier.h"

namespace zsq::generator {
namespace {

constexpr std::int64_t kWide = 128, kNarrow = 64;  // channels
constexpr std::int64_t kSmallImage = 32;           // pixels

}  // namespace

Generator::Generator(const models::Model& teacher, const GeneratorOptions& options,
                     std::uint64_t seed, bool weights)
    : options_(options),
      seed_(seed),
      image_{teacher.graph.input_shape[1], teacher.graph.input_shape[2]},
      map_{(image_[0] + 3) / 4, (image_[1] + 3) / 4} {
  const auto classifier = models::classifier_weight(teacher);
  const auto device = classifier.device();
  classes_ = teacher.classes;
  feature_width_ = classifier.size(1);
  labels_per_image_ = std::min(options.superposed_labels, classes_);
  conditional_ = std::max(image_[0], image_[1]) > kSmallImage;
  if (!weights) return;

  const auto add = [&](const std::string& name, const at::Tensor& value, bool trainable = true) {
    store_.set(name, value.to(device).requires_grad_(trainable));
  };
  const auto stream = [&](const std::string& name) {
    return at::detail::createCPUGenerator(stream_seed(seed, "generator." + name, 0));
  };
  const auto uniform = [&](const std::string& name, at::IntArrayRef shape, std::int64_t fan_in) {
    add(name, first_weights(shape, fan_in, stream(name)));
  };
  const auto norm = [&](const std::string& name, std::int64_t channels) {
    const auto shape =
        conditional_ ? std::vector{classes_, channels} : std::vector<std::int64_t>{channels};
    add(name + ".gamma", at::ones(shape));
    add(name + ".beta", at::zeros(shape));
  };

  add("embedding",
      options.embeddings_from_classifier
          ? classifier.clone()
          : at::randn({classes_, feature_width_}, stream("embedding"), at::kFloat),
      options.train_embeddings);
  std::int64_t width = feature_width_;
  if (options.disentangle) {
    width = options.latent_width ? options.latent_width : conditional_ ? 100 : 64;
    uniform("map.weight", {width, feature_width_}, feature_width_);
  }
  const auto projected = map_[0] * map_[1] * kWide;
  uniform("project.weight", {projected, width}, width);
  uniform("project.bias", {projected}, width);
  norm("norm0", kWide);
  uniform("conv1.weight", {kWide, kWide, 3, 3}, kWide * 9);
  norm("norm1", kWide);
  uniform("conv2.weight", {kNarrow, kWide, 3, 3}, kWide * 9);
  norm("norm2", kNarrow);
  const auto channels = teacher.graph.input_shape[0];
  uniform("conv3.weight", {channels, kNarrow, 3, 3}, kNarrow * 9);
  uniform("conv3.bias", {channels}, kNarrow * 9);
}

at::Tensor Generator::latent(const LatentBatch& draw) const {
  const auto noisy =
      at::embedding(store_.at("embedding"), draw.labels).add(draw.noise, options_.noise_scale);
  auto weights = draw.weights;
  if (options_.normalise_superposed)
    weights = weights.div(weights.square().sum(1, /*keepdim=*/true).sqrt());
  const auto mixed =
      weights.unsqueeze(1).matmul(at::layer_norm(noisy, {feature_width_})).squeeze(1);
  // The map is linear: mapping the sum is mapping each label.
  return options_.disentangle ? at::linear(mixed, store_.at("map.weight")) : mixed;
}

at::Tensor Generator::normalise(const at::Tensor& x, const std::string& name,
                                const LatentBatch& draw, double eps, double slope,
                                const cuda_kernels::BatchPart& part) const {
  auto gamma = store_.at(name + ".gamma"), beta = store_.at(name + ".beta");
  if (conditional_) {  // the weights of an image's labels, spread over all classes, are its targets
    auto weights = draw.targets;
    if (options_.conditional_mix_average) {
      const auto superposed = draw.weights.slice(1, 0, 1).ne(1);
      weights = at::where(superposed, weights.div(labels_per_image_), weights);
    }
    gamma = weights.matmul(gamma);
    beta = weights.matmul(beta);
  }
  return cuda_kernels::bn_leaky_relu(x, gamma, beta, eps, slope, part);
}

at::Tensor Generator::forward(const LatentBatch& draw, Precision precision,
                              const cuda_kernels::BatchPart& part) const {
  constexpr double kSlope = 0.2, kNoSlope = 1;
  constexpr double kEps = 1e-5, kHiddenEps = 0.8;  // the second one as GDFQ and Qimera publish it
  const auto work = precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  const auto weight = [&](const char* name) { return store_.at(name).to(work); };
  auto x =
      projected_map(latent(draw).to(work), weight("project.weight"), weight("project.bias"), map_);
  x = normalise(x, "norm0", draw, kEps, kNoSlope, part);
  x = cuda_kernels::upsampled_conv(x, store_.at("conv1.weight"));
  x = normalise(x, "norm1", draw, kHiddenEps, kSlope, part);
  x = cuda_kernels::upsampled_conv(x, store_.at("conv2.weight"));
  x = normalise(x, "norm2", draw, kHiddenEps, kSlope, part);
  x = cuda_kernels::conv_to_image(x, store_.at("conv3.weight"), store_.at("conv3.bias"), 1);
  return normalised_pixels(x, image_, part, options_.pixel_mean, options_.pixel_deviation);
}

std::vector<Generator::LayerWork> Generator::layer_work(Precision precision) const {
  const auto small = map_[0] * map_[1];  // pixels of the smallest map
  const auto numel = [&](const char* name) { return store_.at(name).numel(); };
  std::vector<LayerWork> work;
  bool input_learns = options_.train_embeddings;
  if (options_.disentangle) {
    work.push_back({numel("map.weight"), input_learns});
    input_learns = true;
  }
  work.push_back({numel("project.weight"), input_learns});
  const auto products = cuda_kernels::upsampled_conv_products(
      store_.at("conv1.weight").device().type(),
      precision == Precision::bf16 ? at::kBFloat16 : at::kFloat);
  work.push_back({numel("conv1.weight") / 9 * products * small, true});
  work.push_back({numel("conv2.weight") / 9 * products * 4 * small, true});
  work.push_back({numel("conv3.weight") * 16 * small, true});
  return work;
}

std::vector<std::pair<std::string, at::Tensor>> Generator::parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& name : store_.names()) all.emplace_back(name, store_.at(name));
  return all;
}

void Generator::load(const std::vector<std::pair<std::string, at::Tensor>>& state) {
  if (state.size() != store_.names().size()) {
    throw Error(ErrorCode::bad_input, "a generator of " + std::to_string(store_.names().size()) +
                                          " tensors cannot take " + std::to_string(state.size()));
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : state) {
    if (!store_.contains(name) || store_.at(name).sizes() != value.sizes()) {
      throw Error(ErrorCode::bad_input, "the generator has no tensor '" + name + "' of shape " +
                                            c10::str(value.sizes()) +
                                            "; it was saved for another network or recipe");
    }
    store_.at(name).copy_(value);
  }
}

}  // namespace zsq::generator
