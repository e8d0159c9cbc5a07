// SPDX-License-Identifier: Apache-2.0
// One convolution, what it reads, and what rounding its weights does to its output.
#pragma once
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>

#include "cuda_kernels/fake_quant.h"
#include "quant/rounding/input_moments.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {

inline const QuantizerSpec kSpec = weight_spec(3, false, Mode::deploy);

inline models::Node convolution(std::int64_t groups) {
  return {"conv", models::Conv2d{{2, 1}, {0, 1, 1, 1}, {1, 1}, groups}, {0}, {}};
}

// Channels that go together, and places that do.
inline at::Tensor smooth_images(std::int64_t channels, std::uint64_t seed) {
  const auto common = test::normal({6, 1, 9, 9}, seed);
  auto x = test::normal({6, channels, 9, 9}, seed + 1).mul(0.4).add(common).relu();
  return x.add(x.roll(1, 2)).add(x.roll(1, 3));
}

inline at::Tensor output(std::int64_t groups, const at::Tensor& x, const at::Tensor& weight) {
  const auto padded = at::constant_pad_nd(x, {1, 1, 0, 1});
  return at::conv2d(padded, weight, {}, {2, 1}, at::IntArrayRef{0, 0}, {1, 1}, groups);
}

inline InputMoments moments_of(std::int64_t groups, const at::Tensor& x, const at::Tensor& x_hat,
                               const at::Tensor& weight) {
  InputMomentsSum sum(convolution(groups), weight, 1000, 1);
  sum.add(x.narrow(0, 0, 4), x_hat.narrow(0, 0, 4));
  sum.add(x.narrow(0, 4, 2), x_hat.narrow(0, 4, 2));
  return sum.moments();
}

inline at::Tensor codes_of(const at::Tensor& weight, const at::Tensor& scale,
                           const at::Tensor& zero_point) {
  return cuda_kernels::quantize(weight, scale, zero_point, kSpec.qmin, kSpec.qmax);
}

inline at::Tensor on_grid(const at::Tensor& weight, const at::Tensor& scale,
                          const at::Tensor& zero_point) {
  const auto rows = [](const at::Tensor& t) { return t.view({-1, 1, 1, 1}); };
  return codes_of(weight, scale, zero_point).to(at::kFloat).sub(rows(zero_point)).mul(rows(scale));
}

// Mean square of what is left of an error of the output when each channel's mean is taken out.
inline double spread(const at::Tensor& error) {
  return error.sub(error.mean({0, 2, 3}, true)).square().mean().item<double>();
}

}  // namespace zsq::quant
