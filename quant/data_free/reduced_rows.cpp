// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/reduced_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/prod.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "quant/data_free/sampled_rows.h"

namespace zsq::quant {
namespace {

using models::ReduceKind;
using Axes = std::vector<std::int64_t>;

constexpr std::int64_t kManySummands = 16;

std::int64_t count(const at::Tensor& x, const Axes& axes) {
  std::int64_t n = 1;
  for (const auto axis : axes) n *= x.size(axis);
  return n;
}

// On samples, or on rows whose values rise and fall together.
at::Tensor reduced(ReduceKind kind, const at::Tensor& x, const Axes& axes) {
  switch (kind) {
    case ReduceKind::mean:
      return x.mean(axes, true);
    case ReduceKind::sum:
      return x.sum(axes, true);
    case ReduceKind::max:
      return at::amax(x, axes, true);
    case ReduceKind::min:
      return at::amin(x, axes, true);
    case ReduceKind::product:
      break;
  }
  auto product = x;
  for (const auto axis : axes) product = at::prod(product, axis, true);
  return product;
}

at::Tensor over_places(ReduceKind kind, const at::Tensor& rows, const Axes& axes) {
  const auto n = count(rows, axes);
  const double independent = std::pow(static_cast<double>(n), 1 - kFarCorrelation);
  if (kind == ReduceKind::min) return -over_places(ReduceKind::max, -rows, axes).flip(0);
  if (kind == ReduceKind::product) return reduced(kind, rows, axes);
  if (kind == ReduceKind::max)
    return reduced(kind, distribution::largest_of(rows, independent), axes);
  const auto average = reduced(ReduceKind::mean, rows, axes);
  const auto mean = distribution::average_of(average, static_cast<double>(n), kFarCorrelation);
  return kind == ReduceKind::sum ? mean.mul(static_cast<double>(n)) : mean;
}

at::Tensor over_channels(ReduceKind kind, const at::Tensor& rows, const Axes& axes) {
  const auto n = count(rows, axes);
  const bool is_sum = kind == ReduceKind::sum || kind == ReduceKind::mean;
  if (!is_sum || n < kManySummands)
    return distribution::sampled(
        {rows}, [&](const std::vector<at::Tensor>& in) { return reduced(kind, in[0], axes); });
  const double share = kind == ReduceKind::mean ? 1 / static_cast<double>(n) : 1;
  const auto sum =
      distribution::normal(distribution::mean(rows).sum(axes, true).mul(share),
                           distribution::variance(rows).sum(axes, true).mul(share * share));
  return sum.minimum(at::amax(rows, 0, true).sum(axes, true).mul(share))
      .maximum(at::amin(rows, 0, true).sum(axes, true).mul(share));
}

}  // namespace

at::Tensor reduced_rows(const models::Reduce& op, const at::Tensor& rows) {
  Axes places, channels;
  at::Tensor x = rows;
  for (std::int64_t d = 1; d < rows.dim(); ++d) {
    const bool same = rows.stride(d) == 0 || rows.size(d) == 1;
    if (std::ranges::find(op.axes, d) != op.axes.end())
      (same || (rows.dim() == 4 && d >= 2) ? places : channels).push_back(d);
    else if (rows.stride(d) == 0)
      x = x.narrow(d, 0, 1);
  }
  if (!places.empty()) x = over_places(op.kind, x, places);
  if (!channels.empty()) x = over_channels(op.kind, x, channels);
  auto shape = rows.sizes().vec();
  for (const auto axis : op.axes) shape[axis] = 1;
  x = x.expand(shape);
  if (!op.keepdims)
    for (const auto axis : std::views::reverse(op.axes)) x = x.squeeze(axis);
  return x;
}

}  // namespace zsq::quant
