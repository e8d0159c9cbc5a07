// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_leaky_relu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/bn_act.h"
#include "cuda_kernels/channel_moments.h"
#include "cuda_kernels/moments_of_sums.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "bn_leaky_relu";

// For the backward pass.
struct SavedPart : torch::CustomClassHolder {
  explicit SavedPart(const BatchPart& p) : part(p) {}
  BatchPart part;
};

struct BatchMoments {
  at::Tensor mean, variance;  // [C] f32
  double count = 0;           // elements of a channel
};

BatchMoments batch_moments(const at::Tensor& x, const BatchPart& part) {
  const auto [mean, variance] = channel_moments(x);
  const double count = elements_per_channel(x) / part.share;
  if (!part.sum) return {mean, variance, count};
  const at::Tensor m = mean.to(at::kDouble), v = variance.to(at::kDouble);
  const at::Tensor whole = at::stack({m, v + m * m}) * part.share;
  part.sum(whole);
  return {whole[0].to(at::kFloat), (whole[1] - whole[0] * whole[0]).clamp_min_(0).to(at::kFloat),
          count};
}

struct Function : torch::autograd::Function<Function> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_any, const at::Tensor& gamma,
                            const at::Tensor& beta, double eps, double slope,
                            const BatchPart& part) {
    const at::Tensor x = dense(x_any);
    const auto [mean, variance, count] = batch_moments(x, part);
    const at::Tensor inverse = (variance + eps).rsqrt_();
    BnActPass whole{.op = kOp, .x = x, .y = at::empty_like(x)};
    whole.per_image = gamma.dim() == 2;
    whole.gain = (gamma * inverse).reshape({-1, x.size(1)}).contiguous();
    whole.offset = (beta.reshape({-1, x.size(1)}) - mean * whole.gain).contiguous();
    ctx->save_for_backward({x, whole.gain, whole.offset, mean, inverse});
    ctx->saved_data["slope"] = slope;
    ctx->saved_data["per_image"] = whole.per_image;
    ctx->saved_data["count"] = count;
    if (part.sum)
      ctx->saved_data["part"] = c10::IValue::make_capsule(c10::make_intrusive<SavedPart>(part));
    const LeakyAct act{static_cast<float>(slope)};
    whole.run([&](const auto& t, const auto& c) { bn_act_cpu(t, c, act); },
              [&](const auto& t, const auto& c, auto scratch) { bn_act_cuda(t, c, act, scratch); });
    return whole.y;
  }

  // With s1 = sum of du and s2 = sum of du (x - mean) over the h, w (and n) that share a gamma, and
  // M elements in a channel: dbeta = s1, dgamma = s2 inverse, and by the chain rule through the
  // moments dx = du gain - sum_n(gain s1) / M - (x - mean) inverse^2 sum_n(gain s2) / M.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &inverse = saved[4];
    BnActPass whole{.op = kOp, .x = x, .dy = in_order_of(x, grads[0])};
    whole.gain = saved[1];
    whole.offset = saved[2];
    whole.mean = saved[3];
    whole.per_image = ctx->saved_data["per_image"].toBool();
    const LeakyAct act{static_cast<float>(ctx->saved_data["slope"].toDouble())};
    const at::Tensor sums =
        at::zeros({whole.gain.size(0), 2, x.size(1)}, x.options().dtype(at::kDouble));
    double* out = sums.mutable_data_ptr<double>();
    whole.run([&](const auto& t, const auto& c) { bn_act_sums_cpu(t, c, act, out); },
              [&](const auto& t, const auto& c, auto scratch) {
                bn_act_sums_cuda(t, c, act, out, scratch);
              });
    at::Tensor through = (sums * whole.gain.unsqueeze(1)).sum(0);  // [2, C]
    if (const auto found = ctx->saved_data.find("part"); found != ctx->saved_data.end())
      static_cast<const SavedPart&>(*found->second.toCapsule()).part.sum(through);
    through = through / -ctx->saved_data["count"].toDouble();
    whole.a = through[0].to(at::kFloat);
    whole.b = (through[1] * inverse * inverse).to(at::kFloat);
    whole.dx = at::empty_like(x);
    whole.run([&](const auto& t, const auto& c) { bn_act_through_moments_cpu(t, c, act); },
              [&](const auto& t, const auto& c, auto scratch) {
                bn_act_through_moments_cuda(t, c, act, scratch);
              });
    at::Tensor dbeta = sums.select(1, 0).to(at::kFloat);
    at::Tensor dgamma = (sums.select(1, 1) * inverse).to(at::kFloat);
    if (!whole.per_image) {
      dbeta = dbeta[0];
      dgamma = dgamma[0];
    }
    const at::Tensor none;
    return {whole.dx, dgamma, dbeta, none, none, none};
  }
};

}  // namespace

at::Tensor bn_leaky_relu(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                         double eps, double slope, const BatchPart& part) {
  check_activation(kOp, "x", x);
  if (x.dim() != 4 || x.numel() == 0)
    fail(kOp, "x", describe(x), "[N, C, H, W] with at least one element");
  const at::IntArrayRef shape = x.sizes().slice(0, 2);
  const bool per_image = gamma.defined() && gamma.dim() == 2;
  check_like(kOp, "gamma", gamma, x, per_image ? shape : shape.slice(1));
  check_like(kOp, "beta", beta, x, gamma.sizes());
  if (!(eps >= 0)) fail(kOp, "eps", std::to_string(eps), "at least 0");
  return Function::apply(x, gamma, beta, eps, slope, part);
}

}  // namespace zsq::cuda_kernels
