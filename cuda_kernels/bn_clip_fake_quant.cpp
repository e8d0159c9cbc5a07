// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/bn_act.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "bn_clip_fake_quant";

ClipQuant act_of(const at::Tensor& scale, const at::Tensor& zero_point,
                 const BnClipFakeQuantArgs& args) {
  return {args.lo,
          args.hi,
          scale.const_data_ptr<float>(),
          zero_point.const_data_ptr<float>(),
          {static_cast<float>(args.qmin), static_cast<float>(args.qmax)},
          args.surrogate == Surrogate::clipped};
}

struct BnClipFakeQuant : torch::autograd::Function<BnClipFakeQuant> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_any,
                            const std::optional<at::Tensor>& residual, const at::Tensor& gamma,
                            const at::Tensor& beta, const at::Tensor& mean,
                            const at::Tensor& variance, const at::Tensor& scale,
                            const at::Tensor& zero_point, const BnClipFakeQuantArgs& args) {
    const auto [gain, offset, deviation] = fold_batch_norm(gamma, beta, mean, variance, args.eps);
    const at::Tensor x = dense(x_any), added = residual ? in_order_of(x, *residual) : at::Tensor();
    const at::Tensor step = scale.contiguous(), zero = zero_point.contiguous();
    ctx->save_for_backward({x, added, gain, offset, mean.contiguous(), step, zero, deviation});
    ctx->saved_data["learns_scale"] = scale.requires_grad();
    ctx->saved_data["settings"] = std::vector<double>{
        args.lo, args.hi, static_cast<double>(args.qmin), static_cast<double>(args.qmax),
        args.surrogate == Surrogate::clipped ? 1.0 : 0.0};
    BnActPass pass{.op = kOp, .x = x, .residual = added, .y = at::empty_like(x)};
    pass.gain = gain;
    pass.offset = offset;
    const ClipQuant act = act_of(step, zero, args);
    pass.run([&](const auto& t, const auto& c) { bn_act_cpu(t, c, act); },
             [&](const auto& t, const auto& c, auto scratch) { bn_act_cuda(t, c, act, scratch); });
    return pass.y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<double> settings = ctx->saved_data["settings"].toDoubleVector();
    BnClipFakeQuantArgs args;
    args.lo = static_cast<float>(settings[0]);
    args.hi = static_cast<float>(settings[1]);
    args.qmin = static_cast<std::int64_t>(settings[2]);
    args.qmax = static_cast<std::int64_t>(settings[3]);
    args.surrogate = settings[4] != 0 ? Surrogate::clipped : Surrogate::pass_through;

    BnActPass pass{.op = kOp, .x = saved[0], .residual = saved[1]};
    pass.gain = saved[2];
    pass.offset = saved[3];
    pass.mean = saved[4];
    pass.dy = in_order_of(pass.x, grads[0]);
    pass.dx = at::empty_like(pass.x);
    if (pass.residual.defined()) pass.dresidual = at::empty_like(pass.x);
    const bool slopes = ctx->saved_data["learns_scale"].toBool();
    const at::Tensor sums =
        at::zeros({slopes ? 3 : 2, pass.x.size(1)}, pass.x.options().dtype(at::kDouble));
    double* out = sums.mutable_data_ptr<double>();
    const ClipQuant act = act_of(saved[5], saved[6], args);
    pass.run([&](const auto& t, const auto& c) { bn_act_backward_cpu(t, c, act, slopes, out); },
             [&](const auto& t, const auto& c, auto scratch) {
               bn_act_backward_cuda(t, c, act, slopes, out, scratch);
             });
    const at::Tensor none;
    const at::Tensor dscale =
        slopes ? sums[2].sum().to(at::kFloat).reshape(saved[5].sizes()) : none;
    return {pass.dx,
            pass.dresidual,
            (sums[1] / saved[7]).to(at::kFloat),
            sums[0].to(at::kFloat),
            none,
            none,
            dscale,
            none,
            none};
  }
};

}  // namespace

at::Tensor bn_clip_fake_quant(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const at::Tensor& gamma, const at::Tensor& beta,
                              const at::Tensor& mean, const at::Tensor& variance,
                              const at::Tensor& scale, const at::Tensor& zero_point,
                              const BnClipFakeQuantArgs& args) {
  check_batch_norm(kOp, x, residual, gamma, beta, mean, variance, args.eps, args.lo, args.hi);
  check_like(kOp, "scale", scale, x, {});
  check_like(kOp, "zero_point", zero_point, x, {});
  check_codes(kOp, args.qmin, args.qmax);
  return BnClipFakeQuant::apply(x, residual, gamma, beta, mean, variance, scale, zero_point, args);
}

}  // namespace zsq::cuda_kernels
