// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cuda_kernels.h"

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
#include "cuda_kernels/weight_range.h"
#include "train/optimizers.h"

namespace zsq::benchmarks {
namespace {

using Tensors = std::vector<at::Tensor>;
using cuda_kernels::Surrogate;

constexpr double kLr = 1e-4, kMomentum = 0.9;

struct Case {
  std::string name, variant, pass, precision;
  std::int64_t tensor_bytes = 0;
  int tensors_moved = 0;
  std::function<void()> run;
};

// All cases of one size. They share their inputs where nothing is written in place.
class Cases {
 public:
  Cases(std::int64_t bytes, c10::Device device)
      : options_(at::TensorOptions(device).dtype(at::kFloat)),
        weight_(normal({std::max<std::int64_t>(bytes / (4 * 64 * 9), 2), 64, 3, 3})) {
    activations(bytes, at::kFloat);
    activations(bytes, at::kBFloat16);
    weights();
    logits(std::max<std::int64_t>(bytes / (4 * 1000), 2));
  }
  const std::vector<Case>& cases() const { return cases_; }

 private:
  at::Tensor normal(at::IntArrayRef shape) const {
    const auto format =
        shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    return at::empty(shape, options_, format).normal_();
  }
  at::Tensor scalar(double value) const { return at::full({}, value, options_); }

  void add(const char* name, const char* variant, const char* pass, const at::Tensor& tensor,
           int tensors_moved, std::function<void()> run) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    cases_.push_back({name, variant, pass, tensor.scalar_type() == at::kFloat ? "fp32" : "bf16",
                      bytes, tensors_moved, std::move(run)});
  }

  // `run` returns what is differentiated; backward runs again and again over the one graph that
  // stays.
  template <class Run>
  void add_both(const char* name, const char* variant, const Tensors& inputs,
                const Tensors& gradients, int moved_forward, int moved_backward, const Run& run) {
    add(name, variant, "forward", inputs[0], moved_forward, [run] { run(); });
    add_backward(name, variant, inputs, gradients, moved_backward, run());
  }
  void add_backward(const char* name, const char* variant, const Tensors& inputs,
                    const Tensors& gradients, int moved, const Tensors& outputs) {
    add(name, variant, "backward", inputs[0], moved, [inputs, outputs, gradients] {
      torch::autograd::grad(outputs, inputs, gradients, /*retain_graph=*/true);
    });
  }

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
                 norm(learned));
    add_backward("fake_quant", "learned scale", {x, learned}, {dy}, 3, round(learned));
  }

  void weights() {
    const auto [lo, hi] = cuda_kernels::channel_min_max(weight_);
    const auto grid = cuda_kernels::grid_from_range(lo, hi, -8, 7, false);
    const auto w = at::Tensor(weight_.detach()).requires_grad_(true);
    const auto gradient = normal(w.sizes());
    add_both("fake_quant", "per_channel", {w}, {gradient}, 2, 3, [=] {
      return Tensors{
          cuda_kernels::fake_quant(w, grid.scale, grid.zero_point, -8, 7, Surrogate::clipped)};
    });
    add("weight_range", "", "forward", w, 1, [w] { cuda_kernels::channel_min_max(w); });

    const cuda_kernels::InundationArgs args{kLr, kMomentum, 1e-3, 1e4, 1, -8, 7};
    auto moved = weight_.clone(), velocity = at::zeros_like(weight_);
    add("inundation", "", "step", w, 5, [=]() mutable {
      cuda_kernels::inundate_(moved, velocity, gradient, grid.scale, grid.zero_point, args);
    });
    const auto fused = weight_.clone(), fused_velocity = at::zeros_like(weight_);
    add("sgd_nesterov", "fused", "step", w, 5, [=] {
      at::_fused_sgd_({fused}, {gradient}, {fused_velocity}, /*weight_decay=*/0, kMomentum, kLr,
                      /*dampening=*/0, /*nesterov=*/true, /*maximize=*/false,
                      /*is_first_step=*/false);
    });
    const auto sequence = std::make_shared<train::Nesterov>(
        train::NamedTensors{{"weight", weight_.clone()}}, kMomentum);
    add("sgd_nesterov", "foreach", "step", w, 5, [=] { sequence->step({gradient}, kLr); });
  }

  // Forward keeps the difference of both softmaxes for backward, as training does.
  void logits(std::int64_t rows) {
    const auto student = normal({rows, 1000}).requires_grad_(true);
    const auto teacher = normal({rows, 1000});
    add_both("kl_divergence", "", {student}, {scalar(1)}, 3, 2, [=] {
      return Tensors{cuda_kernels::kl_divergence(student, teacher, 20, static_cast<double>(rows))};
    });
  }

  at::TensorOptions options_;
  at::Tensor weight_;
  std::vector<Case> cases_;
};

std::vector<KernelTime> time_size(std::int64_t bytes, double copy, c10::Device device,
                                  std::int64_t rounds, Observer& observer) {
  const Cases all(bytes, device);
  std::vector<std::function<void()>> runs;
  for (const Case& c : all.cases()) runs.push_back(c.run);
  const auto seconds = time_cases(runs, rounds, device, observer);
  std::vector<KernelTime> times;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Case& c = all.cases()[i];
    const std::int64_t moved = c.tensors_moved * c.tensor_bytes;
    const double rate = static_cast<double>(moved) / seconds[i].min;
    times.push_back({c.name,
                     c.variant,
                     c.pass,
                     c.precision,
                     c.tensor_bytes,
                     moved,
                     seconds[i],
                     rate / copy,
                     {},
                     {}});
  }
  const auto seconds_of = [&](const std::string& name, const std::string& variant) {
    return std::find_if(times.begin(), times.end(),
                        [&](const KernelTime& t) { return t.name == name && t.variant == variant; })
        ->seconds.min;
  };
  for (KernelTime& time : times) {
    if (time.name != "inundation") continue;
    time.over_fused_sgd = time.seconds.min / seconds_of("sgd_nesterov", "fused");
    time.over_foreach_sgd = time.seconds.min / seconds_of("sgd_nesterov", "foreach");
  }
  return times;
}

}  // namespace

std::vector<KernelTime> time_kernels(const MachinePeaks& machine, c10::Device device,
                                     std::int64_t rounds, Observer& observer) {
  auto times = time_size(machine.cached_bytes, machine.copy_cached, device, rounds, observer);
  const auto large = time_size(machine.large_bytes, machine.copy_large, device, rounds, observer);
  times.insert(times.end(), large.begin(), large.end());
  return times;
}

}  // namespace zsq::benchmarks
