// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/input_moments.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/im2col.h>
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

// [N, G, K, positions]
at::Tensor patches_of(const models::Node& layer, const std::vector<std::int64_t>& weight,
                      const at::Tensor& x) {
  const auto* conv = models::get_if<models::Conv2d>(layer);
  if (!conv) return x.reshape({-1, 1, weight[1], 1});
  const auto& pads = conv->pads;
  const auto padded = at::constant_pad_nd(x, {pads[1], pads[3], pads[0], pads[2]});
  return at::im2col(padded, {weight[2], weight[3]}, conv->dilation, {0, 0}, conv->stride)
      .reshape({x.size(0), conv->groups, weight[1] * weight[2] * weight[3], -1});
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
  auto a = patches_of(layer_, weight_shape_, x), b = patches_of(layer_, weight_shape_, x_hat);
  if (a.size(3) > positions_) {
    const auto chosen =
        at::randperm(a.size(3), draws_, at::kLong).narrow(0, 0, positions_).to(a.device());
    a = a.index_select(3, chosen);
    b = b.index_select(3, chosen);
  }
  const auto flat = [](const at::Tensor& t) {  // [G, K, N * positions]
    return t.permute({1, 2, 0, 3}).reshape({t.size(1), t.size(2), -1});
  };
  a = flat(a);
  b = flat(b);
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
