// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/bn_act.h"
#include "cuda_kernels/moments_of_sums.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "bn_clip_moments";

struct Function : torch::autograd::Function<Function> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_any,
                               const std::optional<at::Tensor>& residual, const at::Tensor& gain,
                               const at::Tensor& offset, const at::Tensor& mean,
                               const BnClipMomentsArgs& args) {
    const at::Tensor x = dense(x_any), added = residual ? in_order_of(x, *residual) : at::Tensor();
    BnActPass pass{.op = kOp, .x = x, .residual = added, .y = at::empty_like(x)};
    pass.gain = gain;
    pass.offset = offset;
    pass.mean = mean.contiguous();  // near the batch's: distances to it keep the digits
    const at::Tensor sums = at::empty({2, x.size(1)}, x.options().dtype(at::kDouble));
    double* out = sums.mutable_data_ptr<double>();
    const ClipAct act{args.lo, args.hi};
    pass.run([&](const auto& t, const auto& c) { bn_act_moments_cpu(t, c, act, out); },
             [&](const auto& t, const auto& c, auto scratch) {
               bn_act_moments_cuda(t, c, act, out, scratch);
             });
    const auto [batch_mean, batch_variance] =
        moments_of_sums(sums, pass.mean, elements_per_channel(x));
    ctx->save_for_backward({x, added, pass.gain, pass.offset, batch_mean});
    ctx->saved_data["lo"] = args.lo;
    ctx->saved_data["hi"] = args.hi;
    return {pass.y, batch_mean, batch_variance};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    BnActPass pass{.op = kOp, .x = saved[0], .residual = saved[1]};
    pass.gain = saved[2];
    pass.offset = saved[3];
    pass.mean = saved[4];
    const double count = elements_per_channel(pass.x);
    pass.a = grads[1] / count;
    pass.b = grads[2] * (2 / count);
    pass.dy = in_order_of(pass.x, grads[0]);
    pass.dx = at::empty_like(pass.x);
    if (pass.residual.defined()) pass.dresidual = at::empty_like(pass.x);
    const ClipAct act{static_cast<float>(ctx->saved_data["lo"].toDouble()),
                      static_cast<float>(ctx->saved_data["hi"].toDouble())};
    pass.run([&](const auto& t, const auto& c) { bn_act_through_moments_cpu(t, c, act); },
             [&](const auto& t, const auto& c, auto scratch) {
               bn_act_through_moments_cuda(t, c, act, scratch);
             });
    const at::Tensor none;
    return {pass.dx, pass.dresidual, none, none, none, none};
  }
};

}  // namespace

BnClipMoments bn_clip_moments(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const at::Tensor& gamma, const at::Tensor& beta,
                              const at::Tensor& mean, const at::Tensor& variance,
                              const BnClipMomentsArgs& args) {
  check_batch_norm(kOp, x, residual, gamma, beta, mean, variance, args.eps, args.lo, args.hi);
  return bn_clip_moments(x, residual, fold_batch_norm(gamma, beta, mean, variance, args.eps), mean,
                         args);
}

BnClipMoments bn_clip_moments(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const FoldedBatchNorm& batch_norm, const at::Tensor& mean,
                              const BnClipMomentsArgs& args) {
  const auto& [gain, offset, deviation] = batch_norm;
  check_batch_norm(kOp, x, residual, gain, offset, mean, deviation, args.eps, args.lo, args.hi);
  if (x.numel() == 0) fail(kOp, "x", describe(x), "at least one element");
  const variable_list out = Function::apply(x, residual, gain, offset, mean, args);
  return {out[0], out[1], out[2]};
}

}  // namespace zsq::cuda_kernels
