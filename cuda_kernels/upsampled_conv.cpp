// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/upsampled_conv.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/upsampled_products.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "upsampled_conv";

// A pixel of x is repeated at offsets 0 and 1, so its kernel is the sum of the 3x3 kernel at both,
// first along rows, then along columns; a transposed convolution reads it mirrored, inputs first.
at::Tensor as_transposed_conv(const at::Tensor& x, const at::Tensor& weight) {
  auto kernel = weight.flip({2, 3}).transpose(0, 1);
  kernel = at::constant_pad_nd(kernel, {0, 0, 0, 1}).add(at::constant_pad_nd(kernel, {0, 0, 1, 0}));
  kernel = at::constant_pad_nd(kernel, {0, 1}).add(at::constant_pad_nd(kernel, {1, 0}));
  return at::conv_transpose2d(x, kernel.to(x.scalar_type()), {}, /*stride=*/2, /*padding=*/1);
}

// The factors [3, C, 3, D], by vertical and horizontal product, from weight [D, C, 3, 3].
at::Tensor factors(const at::Tensor& weight) {
  const auto taps = at::tensor({1.f, 1.f, 1.f, -1.f, 0.f, 0.f, 0.f, 0.f, 1.f}).view({3, 3});
  return taps.matmul(weight).matmul(taps.t()).permute({2, 1, 3, 0}).contiguous();
}

// x f32 channels_last, factors as factors() gives them.
struct NineProducts : torch::autograd::Function<NineProducts> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& factors) {
    ctx->save_for_backward({x, factors});
    at::Tensor y = at::empty({x.size(0), factors.size(3), 2 * x.size(2), 2 * x.size(3)},
                             x.options(), at::MemoryFormat::ChannelsLast);
    upsampled::Products(x, factors).forward(y.mutable_data_ptr<float>());
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor dy = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor dx = at::zeros_like(saved[0]);
    const at::Tensor dfactors =
        upsampled::Products(saved[0], saved[1])
            .backward(dy.const_data_ptr<float>(), dx.mutable_data_ptr<float>());
    return {dx, dfactors};
  }
};

}  // namespace

at::Tensor upsampled_conv(const at::Tensor& x, const at::Tensor& weight) {
  check_activation(kOp, "x", x);
  if (x.dim() != 4 || x.numel() == 0)
    fail(kOp, "x", describe(x), "[N, C, H, W] with at least one element");
  check_like(kOp, "weight", weight, x, {weight.defined() ? weight.size(0) : 0, x.size(1), 3, 3});
  if (upsampled_conv_products(x.device().type(), x.scalar_type()) == 16)
    return as_transposed_conv(x, weight);
  return NineProducts::apply(x.contiguous(at::MemoryFormat::ChannelsLast), factors(weight));
}

}  // namespace zsq::cuda_kernels
