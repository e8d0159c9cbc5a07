// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_clip_fake_quant.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/bn_clip_fake_quant_twins.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/scale_gradient.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "bn_clip_fake_quant";

void check_arguments(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                     const at::Tensor& mean, const at::Tensor& variance, const at::Tensor& scale,
                     const at::Tensor& zero_point, const BnClipFakeQuantArgs& args) {
  check_activation(kOp, "x", x);
  if (x.dim() != 4) fail(kOp, "x", describe(x), "[N, C, H, W]");
  const at::IntArrayRef channels = x.sizes().slice(1, 1);
  check_like(kOp, "gamma", gamma, x, channels);
  check_like(kOp, "beta", beta, x, channels);
  check_like(kOp, "mean", mean, x, channels);
  check_like(kOp, "variance", variance, x, channels);
  check_like(kOp, "scale", scale, x, {});
  check_like(kOp, "zero_point", zero_point, x, {});
  check_codes(kOp, args.qmin, args.qmax);
  if (!(args.eps >= 0)) fail(kOp, "eps", std::to_string(args.eps), "at least 0");
  if (!(args.lo < args.hi))
    fail(kOp, "[lo, hi]", "[" + std::to_string(args.lo) + ", " + std::to_string(args.hi) + "]",
         "lo < hi");
}

struct Saved {
  at::Tensor x, gain, offset, mean, scale, zero_point;
};

BnClipView view_of(const Saved& saved, const BnClipFakeQuantArgs& args) {
  return {activation_layout(saved.x),
          saved.gain.const_data_ptr<float>(),
          saved.offset.const_data_ptr<float>(),
          saved.mean.const_data_ptr<float>(),
          saved.scale.const_data_ptr<float>(),
          saved.zero_point.const_data_ptr<float>(),
          args.lo,
          args.hi,
          {static_cast<float>(args.qmin), static_cast<float>(args.qmax)},
          args.surrogate == Surrogate::clipped};
}

at::Tensor forward_raw(const Saved& saved, const BnClipFakeQuantArgs& args) {
  at::Tensor y = at::empty_like(saved.x);
  if (y.numel() == 0) return y;
  const BnClipView view = view_of(saved, args);
  with_element_type(y, [&]<class T>(T) {
    const T* in = elements<T>(saved.x);
    T* out = mutable_elements<T>(y);
    if (y.is_cuda()) {
      const CudaScope cuda(kOp, y.device());
      if constexpr (kHasCuda) bn_clip_fake_quant_cuda(in, out, view, cuda.stream());
    } else {
      bn_clip_fake_quant_cpu(in, out, view);
    }
  });
  return y;
}

// dx, and sums [2, C] over du and du (x - mean).
std::pair<at::Tensor, at::Tensor> backward_raw(const Saved& saved, const at::Tensor& dy,
                                               const BnClipFakeQuantArgs& args) {
  const at::Tensor& x = saved.x;
  at::Tensor dx = at::empty_like(x);
  at::Tensor sums = at::zeros({2, x.size(1)}, x.options().dtype(at::kDouble));
  if (x.numel() == 0) return {dx, sums};
  const BnClipView view = view_of(saved, args);
  double* sums_data = sums.mutable_data_ptr<double>();
  with_element_type(x, [&]<class T>(T) {
    const T *in = elements<T>(x), *dy_data = elements<T>(dy);
    T* dx_data = mutable_elements<T>(dx);
    if (x.is_cuda()) {
      const CudaScope cuda(kOp, x.device());
      const at::Tensor partial = at::empty({channel_sums_scratch(x.size(1))}, sums.options());
      if constexpr (kHasCuda)
        bn_clip_fake_quant_backward_cuda(in, dy_data, dx_data, sums_data,
                                         partial.mutable_data_ptr<double>(), view, cuda.stream());
    } else {
      bn_clip_fake_quant_backward_cpu(in, dy_data, dx_data, sums_data, view);
    }
  });
  return {dx, sums};
}

at::Tensor scale_gradient_raw(const Saved& saved, const at::Tensor& dy,
                              const BnClipFakeQuantArgs& args) {
  const at::Tensor none = at::zeros(saved.scale.sizes(), saved.scale.options());
  if (saved.x.numel() == 0) return none;
  const BnClipView view = view_of(saved, args);
  return scale_gradient(saved.x, dy,
                        {view.layout, view.gain, view.offset, view.lo, view.hi, view.scale,
                         view.zero_point, /*per_channel=*/false, view.range},
                        saved.scale.sizes());
}

struct BnClipFakeQuant : torch::autograd::Function<BnClipFakeQuant> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& gamma,
                            const at::Tensor& beta, const at::Tensor& mean,
                            const at::Tensor& variance, const at::Tensor& scale,
                            const at::Tensor& zero_point, const BnClipFakeQuantArgs& args) {
    const at::Tensor deviation = (variance + args.eps).sqrt_();
    const at::Tensor gain = gamma / deviation;
    const Saved saved{dense(x),           gain,
                      beta - mean * gain, mean.contiguous(),
                      scale.contiguous(), zero_point.contiguous()};
    ctx->save_for_backward(
        {saved.x, saved.gain, saved.offset, saved.mean, saved.scale, saved.zero_point, deviation});
    ctx->saved_data["learns_scale"] = scale.requires_grad();
    ctx->saved_data["settings"] = std::vector<double>{
        args.lo, args.hi, static_cast<double>(args.qmin), static_cast<double>(args.qmax),
        args.surrogate == Surrogate::clipped ? 1.0 : 0.0};
    return forward_raw(saved, args);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list t = ctx->get_saved_variables();
    const std::vector<double> settings = ctx->saved_data["settings"].toDoubleVector();
    BnClipFakeQuantArgs args;
    args.lo = static_cast<float>(settings[0]);
    args.hi = static_cast<float>(settings[1]);
    args.qmin = static_cast<std::int64_t>(settings[2]);
    args.qmax = static_cast<std::int64_t>(settings[3]);
    args.surrogate = settings[4] != 0 ? Surrogate::clipped : Surrogate::pass_through;
    const Saved saved{t[0], t[1], t[2], t[3], t[4], t[5]};
    const at::Tensor dy = in_order_of(saved.x, grads[0]);
    const auto [dx, sums] = backward_raw(saved, dy, args);
    const at::Tensor none;
    const at::Tensor dscale =
        ctx->saved_data["learns_scale"].toBool() ? scale_gradient_raw(saved, dy, args) : none;
    return {dx,  (sums[1] / t[6]).to(at::kFloat), sums[0].to(at::kFloat), none, none, dscale, none,
            none};
  }
};

}  // namespace

at::Tensor bn_clip_fake_quant(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                              const at::Tensor& mean, const at::Tensor& variance,
                              const at::Tensor& scale, const at::Tensor& zero_point,
                              const BnClipFakeQuantArgs& args) {
  check_arguments(x, gamma, beta, mean, variance, scale, zero_point, args);
  return BnClipFakeQuant::apply(x, gamma, beta, mean, variance, scale, zero_point, args);
}

}  // namespace zsq::cuda_kernels
