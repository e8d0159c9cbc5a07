// SPDX-License-Identifier: Apache-2.0
#include "generator/layers.h"

#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv_transpose2d.h>

namespace zsq::generator {

at::Tensor upsampled_conv(const at::Tensor& x, const at::Tensor& weight) {
  // A pixel of x is repeated at offsets 0 and 1, so its kernel is the sum of the 3x3 kernel at
  // both, first along rows, then along columns; a transposed convolution reads it mirrored, inputs
  // first.
  auto kernel = weight.flip({2, 3}).transpose(0, 1);
  kernel = at::constant_pad_nd(kernel, {0, 0, 0, 1}).add(at::constant_pad_nd(kernel, {0, 0, 1, 0}));
  kernel = at::constant_pad_nd(kernel, {0, 1}).add(at::constant_pad_nd(kernel, {1, 0}));
  return at::conv_transpose2d(x, kernel, {}, /*stride=*/2, /*padding=*/1);
}

at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                      double eps) {
  const auto normalise = [&](const at::Tensor& scale, const at::Tensor& shift) {
    return at::batch_norm(x, scale, shift, {}, {}, /*training=*/true, 0, eps, true);
  };
  if (!gamma.defined() || gamma.dim() == 1) return normalise(gamma, beta);
  const auto per_image = [](const at::Tensor& t) { return t.unsqueeze(-1).unsqueeze(-1); };
  return at::addcmul(per_image(beta), normalise({}, {}), per_image(gamma));
}

}  // namespace zsq::generator
