// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/channel_moments_implementations.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/moments_of_sums.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "channel_moments";

// Mean and biased variance [C].
std::pair<at::Tensor, at::Tensor> moments(const at::Tensor& x) {
  // The mean of one row of pixels: near enough to the mean for differences to keep their digits.
  at::Tensor shift = x.dim() == 4 ? x[0].select(1, 0).to(at::kFloat).mean(1) : x[0].to(at::kFloat);
  shift = shift.contiguous();
  const float* shift_data = shift.const_data_ptr<float>();
  const at::Tensor sums = at::empty({2, x.size(1)}, x.options().dtype(at::kDouble));
  double* out = sums.mutable_data_ptr<double>();
  with_element_type(x, [&]<class T>(T) {
    const T* in = elements<T>(x);
    if (x.is_cuda()) {
      const CudaScope cuda(kOp, x.device());
      const at::Tensor partial =
          at::empty({channel_sums_scratch(activation_layout(x))}, sums.options());
      if constexpr (kHasCuda)
        channel_moment_sums_cuda(in, shift_data, out, partial.mutable_data_ptr<double>(),
                                 activation_layout(x), cuda.stream());
    } else {
      channel_moment_sums_cpu(in, shift_data, out, activation_layout(x));
    }
  });
  return moments_of_sums(sums, shift, elements_per_channel(x));
}

at::Tensor backward_raw(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& a,
                        const at::Tensor& b) {
  at::Tensor dx = at::empty_like(x);
  const float* mean_data = mean.const_data_ptr<float>();
  const float* a_data = a.const_data_ptr<float>();
  const float* b_data = b.const_data_ptr<float>();
  with_element_type(x, [&]<class T>(T) {
    const T* in = elements<T>(x);
    T* out = mutable_elements<T>(dx);
    if (x.is_cuda()) {
      const CudaScope cuda(kOp, x.device());
      if constexpr (kHasCuda)
        channel_moments_backward_cuda(in, mean_data, a_data, b_data, out, activation_layout(x),
                                      cuda.stream());
    } else {
      channel_moments_backward_cpu(in, mean_data, a_data, b_data, out, activation_layout(x));
    }
  });
  return dx;
}

struct ChannelMoments : torch::autograd::Function<ChannelMoments> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_any) {
    const at::Tensor x = dense(x_any);
    const auto [mean, variance] = moments(x);
    ctx->save_for_backward({x, mean});
    return {mean, variance};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const double count = elements_per_channel(x);
    return {backward_raw(x, saved[1], grads[0] / count, grads[1] * (2 / count))};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> channel_moments(const at::Tensor& x) {
  check_activation(kOp, "x", x);
  if ((x.dim() != 2 && x.dim() != 4) || x.numel() == 0)
    fail(kOp, "x", describe(x), "[N, C, H, W] or [N, C] with at least one element");
  const variable_list out = ChannelMoments::apply(x);
  return {out[0], out[1]};
}

}  // namespace zsq::cuda_kernels
