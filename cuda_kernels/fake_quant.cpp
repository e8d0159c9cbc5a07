// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/fake_quant.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/fake_quant_implementations.h"
#include "cuda_kernels/scale_gradient.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "fake_quant";

struct FakeQuant : torch::autograd::Function<FakeQuant> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_any, const at::Tensor& scale,
                            const at::Tensor& zero_point, std::int64_t qmin, std::int64_t qmax,
                            bool clipped) {
    const CodeRange range = check_codes(kOp, qmin, qmax);
    const at::Tensor x = dense(x_any);
    const GridTensors grid = check_grid(kOp, x, scale, zero_point);
    ctx->saved_data["clipped"] = clipped;
    ctx->saved_data["learns_scale"] = scale.requires_grad();
    if (clipped || scale.requires_grad()) {
      ctx->save_for_backward({x, scale, zero_point});
      ctx->saved_data["qmin"] = qmin;
      ctx->saved_data["qmax"] = qmax;
    }
    at::Tensor y = at::empty_like(x);
    if (x.numel() == 0) return y;
    with_element_type(x, [&]<class T>(T) {
      const T* in = elements<T>(x);
      T* out = mutable_elements<T>(y);
      if (x.is_cuda()) {
        const CudaScope cuda(kOp, x.device());
        if constexpr (kHasCuda)
          fake_quant_cuda(in, out, x.numel(), grid_view(grid, range), cuda.stream());
      } else {
        fake_quant_cpu(in, out, x.numel(), grid_view(grid, range));
      }
    });
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor none;
    const bool clipped = ctx->saved_data["clipped"].toBool(),
               learns_scale = ctx->saved_data["learns_scale"].toBool();
    if (!clipped && !learns_scale) return {grads[0], none, none, none, none, none};
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const CodeRange range =
        check_codes(kOp, ctx->saved_data["qmin"].toInt(), ctx->saved_data["qmax"].toInt());
    const GridTensors grid = check_grid(kOp, x, saved[1], saved[2]);
    const at::Tensor dy = in_order_of(x, grads[0]);
    const at::Tensor dx = clipped ? at::empty_like(x) : none;
    if (learns_scale) {
      const at::Tensor dscale = scale_gradient(x, dy, grid, range, dx);
      return {clipped ? dx : dy, dscale, none, none, none, none};
    }
    if (x.numel() == 0) return {dx, none, none, none, none, none};
    with_element_type(x, [&]<class T>(T) {
      const T *in = elements<T>(x), *dy_data = elements<T>(dy);
      T* out = mutable_elements<T>(dx);
      if (x.is_cuda()) {
        const CudaScope cuda(kOp, x.device());
        if constexpr (kHasCuda)
          fake_quant_backward_cuda(in, dy_data, out, x.numel(), grid_view(grid, range),
                                   cuda.stream());
      } else {
        fake_quant_backward_cpu(in, dy_data, out, x.numel(), grid_view(grid, range));
      }
    });
    return {dx, none, none, none, none, none};
  }
};

}  // namespace

at::Tensor fake_quant(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                      std::int64_t qmin, std::int64_t qmax, Surrogate surrogate) {
  check_activation(kOp, "x", x);
  check_codes(kOp, qmin, qmax);
  check_grid(kOp, x, scale, zero_point);
  return FakeQuant::apply(x, scale, zero_point, qmin, qmax, surrogate == Surrogate::clipped);
}

at::Tensor quantize(const at::Tensor& x_any, const at::Tensor& scale, const at::Tensor& zero_point,
                    std::int64_t qmin, std::int64_t qmax) {
  constexpr const char* op = "quantize";
  check_float(op, "x", x_any);
  const CodeRange range = check_codes(op, qmin, qmax);
  const at::Tensor x = dense(x_any.detach());
  const GridTensors grid = check_grid(op, x, scale, zero_point);
  at::Tensor codes = at::empty_like(x, at::kInt);
  if (x.numel() == 0) return codes;
  const float* in = x.const_data_ptr<float>();
  std::int32_t* out = codes.mutable_data_ptr<std::int32_t>();
  bool found_nan = false;
  if (x.is_cuda()) {
    const CudaScope cuda(op, x.device());
    const at::Tensor flag = at::zeros({1}, codes.options());
    if constexpr (kHasCuda)
      quantize_cuda(in, out, x.numel(), grid_view(grid, range),
                    flag.mutable_data_ptr<std::int32_t>(), cuda.stream());
    found_nan = flag.item<std::int32_t>() != 0;
  } else {
    found_nan = quantize_cpu(in, out, x.numel(), grid_view(grid, range));
  }
  if (found_nan)
    throw Error(ErrorCode::numeric_failure, "quantize: x / scale holds NaN, which has no code");
  return codes;
}

}  // namespace zsq::cuda_kernels
