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
      .reshape({conv.groups, weight[1] * taps, -1});
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

InputMomentsSum::Places InputMomentsSum::draw_places(const models::Conv2d& conv,
                                                     const at::Tensor& x) {
  const auto extent = [&](std::size_t i) {
    const auto size = x.size(static_cast<std::int64_t>(i) + 2) + conv.pads[i] + conv.pads[i + 2];
    return steps(size, weight_shape_[i + 2], conv.dilation[i], conv.stride[i]);
  };
  const auto columns = extent(1), all = extent(0) * columns;
  return {all > positions_ ? at::randperm(all, draws_, at::kLong).narrow(0, 0, positions_)
                           : at::arange(all, at::kLong),
          columns};
}

void InputMomentsSum::begin(std::int64_t groups, std::int64_t taps, at::Device device) {
  const auto options = at::TensorOptions(device).dtype(at::kDouble);
  const auto square = at::zeros({groups, taps, taps}, options);
  const auto row = at::zeros({groups, taps}, options);
  sums_ = {square, square.clone(), row, row.clone(), row.clone()};
}

void InputMomentsSum::add_depthwise(const models::Conv2d& conv, const at::Tensor& x,
                                    const at::Tensor& x_hat) {
  const models::Pair kernel{weight_shape_[2], weight_shape_[3]};
  if (!origin_.defined()) {
    origin_ = x_hat.mean({0, 2, 3});
    float_origin_ = x.mean({0, 2, 3});
    begin(x.size(1), kernel[0] * kernel[1], x.device());
  }
  const auto [drawn, columns] = draw_places(conv, x);
  const auto* first = drawn.const_data_ptr<std::int64_t>();
  add_depthwise_patches(
      {conv, kernel, x, x_hat, float_origin_, origin_, {first, first + drawn.numel()}, columns},
      sums_);
  patches_ += x.size(0) * drawn.numel();
}

void InputMomentsSum::add_patches(const at::Tensor& x, const at::Tensor& x_hat) {
  at::Tensor a, b;
  if (const auto* conv = models::get_if<models::Conv2d>(layer_)) {
    if (weight_shape_[1] == 1 && x.device().is_cpu()) return add_depthwise(*conv, x, x_hat);
    const auto [drawn, columns] = draw_places(*conv, x);
    const auto places = drawn.to(x.device());
    a = patches_at(*conv, weight_shape_, padded(*conv, x), places, columns);
    b = patches_at(*conv, weight_shape_, padded(*conv, x_hat), places, columns);
  } else {
    a = x.reshape({-1, weight_shape_[1]}).t().unsqueeze(0);
    b = x_hat.reshape({-1, weight_shape_[1]}).t().unsqueeze(0);
  }
  if (!origin_.defined()) {
    origin_ = b.mean(2, true);
    float_origin_ = a.mean(2, true);
    begin(a.size(0), a.size(1), a.device());
  }
  a = a.sub(float_origin_);
  b = b.sub(origin_);
  const auto turned = b.transpose(1, 2);
  sums_.products.add_(at::bmm(b, turned));
  sums_.mixed.add_(at::bmm(a, turned));
  sums_.sum.add_(b.sum(2));
  sums_.float_sum.add_(a.sum(2));
  sums_.squares.add_(a.square().sum(2));
  patches_ += a.size(2);
}

InputMoments InputMomentsSum::moments() const {
  const auto n = static_cast<double>(patches_);
  const auto mean = sums_.sum.div(n), float_mean = sums_.float_sum.div(n);
  const auto product = [](const at::Tensor& a, const at::Tensor& b) {
    return a.unsqueeze(2).mul(b.unsqueeze(1));
  };
  return {sums_.products.div(n).sub(product(mean, mean)),
          sums_.mixed.div(n).sub(product(float_mean, mean)),
          sums_.squares.div(n).sub(float_mean.square())};
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
