// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/input_moments.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace zsq::quant {
namespace {

constexpr std::int64_t kPatchValues = 1 << 24;  // at a time
constexpr double kLargestFactor = 8;

// Positions of a kernel along one dimension.
std::int64_t steps(std::int64_t size, std::int64_t taps, std::int64_t dilation,
                   std::int64_t stride) {
  return (size - dilation * (taps - 1) - 1) / stride + 1;
}

at::Tensor padded(const models::Conv2d& conv, const at::Tensor& x) {
  const auto& pads = conv.pads;
  return at::constant_pad_nd(x, {pads[1], pads[3], pads[0], pads[2]});
}

// Patches at these of the layer's positions, which lie in rows of `columns`: padded x [N, C, H, W]
// -> [G, K, N * positions]. No other values are read: of a large map most positions are left out.
at::Tensor patches_at(const models::Conv2d& conv, const std::vector<std::int64_t>& weight,
                      const at::Tensor& x, const at::Tensor& positions, std::int64_t columns) {
  const auto width = x.size(3), taps = weight[2] * weight[3];
  const auto count = [&](std::int64_t n) { return at::arange(n, positions.options()); };
  const auto first = positions.div(columns, "floor").mul(conv.stride[0] * width) +
                     positions.remainder(columns).mul(conv.stride[1]);
  const auto tap = count(weight[2]).mul(conv.dilation[0] * width).unsqueeze(1) +
                   count(weight[3]).mul(conv.dilation[1]);
  const auto index = (tap.view({-1, 1}) + first).view({-1});
  return x.permute({0, 2, 3, 1})
      .reshape({x.size(0), -1, x.size(1)})
      .index_select(1, index)
      .view({x.size(0), taps, -1, conv.groups, weight[1]})
      .permute({3, 4, 1, 0, 2})
      .reshape({conv.groups, weight[1] * taps, -1})
      .contiguous();
}

}  // namespace

InputMomentsSum::InputMomentsSum(models::Node layer, const at::Tensor& weight,
                                 std::int64_t positions, std::uint64_t seed)
    : layer_(std::move(layer)),
      weight_shape_(weight.sizes().vec()),
      positions_(positions),
      draws_(at::detail::createCPUGenerator(seed)) {}

void InputMomentsSum::add(const at::Tensor& x, const at::Tensor& x_hat) {
  // Patches of a map are at most as many as its values, but for padding.
  std::int64_t values = x.numel() / x.size(0);
  for (std::size_t i = 2; i < weight_shape_.size(); ++i) values *= weight_shape_[i];
  const auto at_a_time = std::max<std::int64_t>(1, kPatchValues / values);
  for (std::int64_t first = 0; first < x.size(0); first += at_a_time) {
    const auto n = std::min(at_a_time, x.size(0) - first);
    add_patches(x.narrow(0, first, n), x_hat.narrow(0, first, n));
  }
}

void InputMomentsSum::add_patches(const at::Tensor& x, const at::Tensor& x_hat) {
  at::Tensor a, b;
  if (const auto* conv = models::get_if<models::Conv2d>(layer_)) {
    const auto wide = padded(*conv, x), wide_hat = padded(*conv, x_hat);
    const auto extent = [&](std::size_t i) {
      return steps(wide.size(static_cast<std::int64_t>(i) + 2), weight_shape_[i + 2],
                   conv->dilation[i], conv->stride[i]);
    };
    const auto columns = extent(1), all = extent(0) * columns;
    const auto positions = all > positions_
                               ? at::randperm(all, draws_, at::kLong).narrow(0, 0, positions_)
                               : at::arange(all, at::kLong);
    const auto places = positions.to(x.device());
    a = patches_at(*conv, weight_shape_, wide, places, columns);
    b = patches_at(*conv, weight_shape_, wide_hat, places, columns);
  } else {
    a = x.reshape({-1, weight_shape_[1]}).t().unsqueeze(0);
    b = x_hat.reshape({-1, weight_shape_[1]}).t().unsqueeze(0);
  }
  if (!origin_.defined()) {
    origin_ = b.mean(2, true);
    float_origin_ = a.mean(2, true);
    const auto options = a.options().dtype(at::kDouble);
    products_ = at::zeros({a.size(0), a.size(1), a.size(1)}, options);
    mixed_ = at::zeros_like(products_);
    sum_ = at::zeros({a.size(0), a.size(1)}, options);
    float_sum_ = at::zeros_like(sum_);
    squares_ = at::zeros_like(sum_);
  }
  a = a.sub(float_origin_);
  b = b.sub(origin_);
  const auto turned = b.transpose(1, 2);
  products_.add_(at::bmm(b, turned));
  mixed_.add_(at::bmm(a, turned));
  sum_.add_(b.sum(2));
  float_sum_.add_(a.sum(2));
  squares_.add_(a.square().sum(2));
  patches_ += a.size(2);
}

InputMoments InputMomentsSum::moments() const {
  const auto n = static_cast<double>(patches_);
  const auto mean = sum_.div(n), float_mean = float_sum_.div(n);
  const auto product = [](const at::Tensor& a, const at::Tensor& b) {
    return a.unsqueeze(2).mul(b.unsqueeze(1));
  };
  return {products_.div(n).sub(product(mean, mean)), mixed_.div(n).sub(product(float_mean, mean)),
          squares_.div(n).sub(float_mean.square())};
}

InputMoments with_variance(const InputMoments& moments, const at::Tensor& variance) {
  const auto found = moments.variance.reshape({variance.size(0), -1});
  const auto has = found.mean(1);
  const auto factor = at::where(has.gt(0), variance.div(has).sqrt(), at::ones_like(has))
                          .clamp(0, kLargestFactor)
                          .unsqueeze(1)
                          .expand_as(found)
                          .reshape(moments.variance.sizes());
  const auto both = factor.unsqueeze(2).mul(factor.unsqueeze(1));
  return {moments.quantized.mul(both), moments.mixed.mul(both),
          moments.variance.mul(factor.square())};
}

}  // namespace zsq::quant
