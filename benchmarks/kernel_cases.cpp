// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/kernel_cases.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "cuda_kernels/bn_clip_moments.h"
#include "cuda_kernels/bn_leaky_relu.h"
#include "cuda_kernels/channel_moments.h"
#include "cuda_kernels/fake_quant.h"
#include "cuda_kernels/inundation.h"
#include "cuda_kernels/kl_divergence.h"
#include "cuda_kernels/layer_fake_quant.h"
#include "cuda_kernels/weight_range.h"
#include "train/optimizers.h"

namespace zsq::benchmarks {
namespace {

using Tensors = std::vector<at::Tensor>;
using cuda_kernels::Surrogate;

constexpr double kLr = 1e-4, kMomentum = 0.9;

// Cases that are timed in turns. They share their inputs where nothing is written in place.
class Cases {
 public:
  explicit Cases(c10::Device device) : options_(at::TensorOptions(device).dtype(at::kFloat)) {}

  std::vector<KernelCase> take() { return std::move(cases_); }

  void activations(std::int64_t bytes, at::ScalarType type) {
    const auto image = static_cast<std::int64_t>(c10::elementSize(type)) * 64 * 32 * 32;
    const auto images = std::max<std::int64_t>(bytes / image, 1);
    const auto x = normal({images, 64, 32, 32}).to(type).requires_grad_(true);
    const auto dy = normal(x.sizes()).to(type);
    const auto gamma = at::ones({64}, options_).requires_grad_(true);
    const auto beta = at::zeros({64}, options_).requires_grad_(true);
    const auto mean = at::zeros({64}, options_), variance = at::ones({64}, options_);
    const auto scale = scalar(0.2), zero_point = scalar(0);
    const cuda_kernels::BnClipFakeQuantArgs args{1e-5, 0,  std::numeric_limits<float>::infinity(),
                                                 0,    15, Surrogate::clipped};
    const auto norm = [=](const at::Tensor& step) {
      return Tensors{cuda_kernels::bn_clip_fake_quant(x, {}, gamma, beta, mean, variance, step,
                                                      zero_point, args)};
    };
    const auto round = [=](const at::Tensor& step) {
      return Tensors{cuda_kernels::fake_quant(x, step, zero_point, 0, 15, Surrogate::clipped)};
    };
    add_both("bn_clip_fake_quant", "", {x, gamma, beta}, {dy}, 2, 3, [=] { return norm(scale); });
    add_both("bn_clip_moments", "", {x}, {dy, mean, variance}, 2, 3, [=] {
      const auto out = cuda_kernels::bn_clip_moments(x, {}, gamma, beta, mean, variance, {});
      return Tensors{out.y, out.batch_mean, out.batch_variance};
    });
    // Moments first, then the map; backward, sums first.
    add_both("bn_leaky_relu", "", {x, gamma, beta}, {dy}, 3, 5,
             [=] { return Tensors{cuda_kernels::bn_leaky_relu(x, gamma, beta, 1e-5, 0.2)}; });
    add_both("channel_moments", "", {x}, {mean, variance}, 1, 2, [=] {
      const auto [m, v] = cuda_kernels::channel_moments(x);
      return Tensors{m, v};
    });
    add_both("fake_quant", "per_tensor", {x}, {dy}, 2, 3, [=] { return round(scale); });
    const auto learned = scalar(0.2).requires_grad_(true);
    add_backward("bn_clip_fake_quant", "learned scale", {x, gamma, beta, learned}, {dy}, 3,
                 [=] { return norm(learned); });
    add_backward("fake_quant", "learned scale", {x, learned}, {dy}, 3,
                 [=] { return round(learned); });
  }

  void weights(std::int64_t bytes) {
    const auto w =
        normal({std::max<std::int64_t>(bytes / 4 / 64 / 9, 2), 64, 3, 3}).requires_grad_(true);
    const auto [lo, hi] = cuda_kernels::channel_min_max(w);
    const auto grid = cuda_kernels::grid_from_range(lo, hi, -8, 7, false);
    const auto gradient = normal(w.sizes());
    add_both("fake_quant", "per_channel", {w}, {gradient}, 2, 3, [=] {
      return Tensors{
          cuda_kernels::fake_quant(w, grid.scale, grid.zero_point, -8, 7, Surrogate::clipped)};
    });
    add("weight_range", "", "forward", {w}, 1, [w] { cuda_kernels::channel_min_max(w); });

    steps("", {w});
  }

  // All weights of a network: ranges computed again and fake-quantization, at once and layer by
  // layer.
  void layers_of(const NetworkShapes& network) {
    const std::string& name = network.name;
    Tensors weights, gradients;
    std::vector<cuda_kernels::QuantLayer> layers;
    for (const auto& shape : network.weights) {
      weights.push_back(normal(shape).requires_grad_(true));
      gradients.push_back(normal(shape));
      layers.push_back({.weight = weights.back(), .qmin = -8, .qmax = 7});
    }
    const auto one_by_one = [=] {
      Tensors outputs;
      for (const auto& w : weights) {
        const auto [lo, hi] = cuda_kernels::channel_min_max(w);
        const auto grid = cuda_kernels::grid_from_range(lo, hi, -8, 7, false);
        outputs.push_back(
            cuda_kernels::fake_quant(w, grid.scale, grid.zero_point, -8, 7, Surrogate::clipped));
      }
      return outputs;
    };
    add_both("fake_quant_layers", name, weights, gradients, 2, 3,
             [=] { return cuda_kernels::fake_quant_layers(layers); });
    add_both("fake_quant_layers", name + " singly", weights, gradients, 2, 3, one_by_one);
    steps(name, weights);
  }

  // Forward keeps the difference of both softmaxes for backward, as training does.
  void logits(std::int64_t bytes) {
    const auto rows = std::max<std::int64_t>(bytes / 4 / 1000, 2);
    const auto student = normal({rows, 1000}).requires_grad_(true);
    const auto teacher = normal({rows, 1000});
    add_both("kl_divergence", "", {student}, {scalar(1)}, 3, 2, [=] {
      return Tensors{cuda_kernels::kl_divergence(student, teacher, 20, static_cast<double>(rows))};
    });
  }

 private:
  at::Tensor normal(at::IntArrayRef shape) const {
    const auto format =
        shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    return at::empty(shape, options_, format).normal_();
  }
  at::Tensor scalar(double value) const { return at::full({}, value, options_); }

  void add(const char* name, const std::string& variant, const char* pass, const Tensors& tensors,
           int tensors_moved, std::function<void()> run) {
    std::int64_t bytes = 0;
    for (const auto& tensor : tensors)
      if (tensor.dim() > 1) bytes += static_cast<std::int64_t>(tensor.nbytes());
    cases_.push_back({name, variant, pass, tensors[0].scalar_type() == at::kFloat ? "fp32" : "bf16",
                      bytes, tensors_moved, std::move(run)});
  }

  // `run` returns what is differentiated; backward runs again and again over the one graph that
  // stays.
  template <class Run>
  void add_both(const char* name, const std::string& variant, const Tensors& inputs,
                const Tensors& gradients, int moved_forward, int moved_backward, const Run& run) {
    add(name, variant, "forward", inputs, moved_forward, [run] { run(); });
    add_backward(name, variant, inputs, gradients, moved_backward, run);
  }
  // On a GPU backward runs on the stream that forward ran on, which has to be the one of the
  // recording: the first run, there, does both.
  template <class Run>
  void add_backward(const char* name, const std::string& variant, const Tensors& inputs,
                    const Tensors& gradients, int moved, const Run& run) {
    add(name, variant, "backward", inputs, moved, [=, outputs = Tensors()]() mutable {
      if (outputs.empty()) outputs = run();
      torch::autograd::grad(outputs, inputs, gradients, /*retain_graph=*/true);
    });
  }

  // What moves weights: inundation, and the plain steps that it is compared with.
  void steps(const std::string& network, const Tensors& like) {
    std::vector<cuda_kernels::InundationLayer> layers;
    Tensors gradients;
    train::NamedTensors named;
    for (const auto& w : like) {
      const auto grid = cuda_kernels::layer_grids({{.weight = w, .qmin = -8, .qmax = 7}})[0];
      gradients.push_back(normal(w.sizes()));
      layers.push_back({w.detach().clone(), at::zeros_like(w.detach()), gradients.back(),
                        grid.scale, grid.zero_point, -8, 7});
      named.emplace_back("weight", w.detach().clone());
    }
    const auto variant = [&](const std::string& way) {
      return network.empty() ? way : network + " " + way;
    };
    const cuda_kernels::InundationArgs args{kLr, kMomentum, 1e-3, 1e4, 1};
    add("inundation", network, "step", like, 5, [=, last_k = at::Tensor()]() mutable {
      last_k = cuda_kernels::inundate_(layers, args, last_k).k;
    });
    Tensors fused, velocities;
    for (const auto& w : like) {
      fused.push_back(w.detach().clone());
      velocities.push_back(at::zeros_like(fused.back()));
    }
    add("sgd_nesterov", variant("fused"), "step", like, 5, [=] {
      at::_fused_sgd_(fused, gradients, velocities, /*weight_decay=*/0, kMomentum, kLr,
                      /*dampening=*/0, /*nesterov=*/true, /*maximize=*/false,
                      /*is_first_step=*/false);
    });
    const auto sequence = std::make_shared<train::Nesterov>(named, kMomentum);
    add("sgd_nesterov", variant("foreach"), "step", like, 5,
        [=] { sequence->step(gradients, kLr); });
  }

  at::TensorOptions options_;
  std::vector<KernelCase> cases_;
};

}  // namespace

std::vector<KernelCase> activation_cases(std::int64_t bytes, at::ScalarType type,
                                         c10::Device device) {
  Cases cases(device);
  cases.activations(bytes, type);
  return cases.take();
}

std::vector<KernelCase> weight_cases(std::int64_t bytes, const NetworkShapes& network,
                                     c10::Device device) {
  Cases cases(device);
  cases.weights(bytes);
  cases.layers_of(network);
  return cases.take();
}

std::vector<KernelCase> logit_cases(std::int64_t bytes, c10::Device device) {
  Cases cases(device);
  cases.logits(bytes);
  return cases.take();
}

}  // namespace zsq::benchmarks
