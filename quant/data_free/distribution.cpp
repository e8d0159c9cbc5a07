// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/distribution.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/special_log_ndtr.h>
#include <ATen/ops/special_ndtri.h>
#include <ATen/ops/tensordot.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace zsq::quant::distribution {
namespace {

constexpr double kStep = 0.25;
constexpr int kGroup = 4;  // nodes of the second operand that count as one
constexpr int kFine = 16;  // steps between two nodes
constexpr std::int64_t kMostOfPair = std::int64_t{1} << 26;  // values of a pair at a time

at::Tensor weights_at(const at::Tensor& z) {
  const auto weights = z.square().mul(-0.5).exp();
  return weights.div(weights.sum());
}

// f64 [n] -> [n, 1, ..., 1], as many dimensions as `like`
at::Tensor along_rows(const at::Tensor& vector, const at::Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = -1;
  return vector.to(like.options()).view(shape);
}

bool varies(const at::Tensor& x, std::int64_t dimension) {
  return x.size(dimension) > 1 && x.stride(dimension) != 0;
}

// matrix [m, kNodes] times rows
at::Tensor mixed(const at::Tensor& matrix, const at::Tensor& rows) {
  return elementwise({rows}, [&](const std::vector<at::Tensor>& in) {
    return at::tensordot(matrix.to(in[0].options()), in[0], {1}, {0});
  });
}

// [groups, kNodes]: the mean of `size` neighbouring nodes, and the groups' probabilities.
std::pair<at::Tensor, at::Tensor> grouping(int size) {
  const std::int64_t count = (kNodes + size - 1) / size;
  const auto groups = at::arange(kNodes, at::kLong).div(size, "floor");
  const auto p = at::zeros({count}, at::kDouble).index_add(0, groups, probabilities());
  const auto averaging = at::zeros({count, kNodes}, at::kDouble);
  averaging.scatter_(0, groups.unsqueeze(0), probabilities().div(p.index({groups})).unsqueeze(0));
  return {averaging, p};
}

// Within the bounds of `values`.
at::Tensor with_moments(const at::Tensor& rows, const at::Tensor& m, const at::Tensor& v,
                        const at::Tensor& values) {
  const auto found = variance(rows);
  const auto factor = at::where(found.gt(0), v.div(found).sqrt(), 1);
  const auto moved = rows.sub(mean(rows)).mul(factor).add(m);
  return moved.minimum(values.amax(0, true)).maximum(values.amin(0, true));
}

// The node before each z, i64, and how far z is from it to the next one, from 0 to 1.
std::pair<at::Tensor, at::Tensor> between_nodes(const at::Tensor& z) {
  const auto place = z.div(kStep).add(kNodes / 2).clamp(0, kNodes - 1);
  const auto left = place.floor().clamp_max(kNodes - 2).to(at::kLong);
  return {left, place.sub(left)};
}

using Pair = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

at::Tensor independent(const at::Tensor& x, const at::Tensor& y, Pair op, Pair op_variance) {
  return elementwise({x, y}, [&](const std::vector<at::Tensor>& in) {
    at::Tensor a = in[0], b = in[1];
    if (a.numel() < b.numel()) std::swap(a, b);
    const auto m = op(mean(a), mean(b));
    const auto v = op_variance(a, b);
    constexpr std::int64_t kGroups = (kNodes + kGroup - 1) / kGroup;
    if (a.numel() * kGroups > kMostOfPair) {  // the shape of what varies more
      const auto wide = at::where(variance(a).gt(variance(b)), a, b);
      const auto factor = v.div(variance(wide).clamp_min(1e-30)).sqrt();
      return wide.sub(mean(wide)).mul(factor).add(m);
    }
    const auto [averaging, p] = grouping(kGroup);
    const auto pairs = op(a.unsqueeze(1), mixed(averaging, b).unsqueeze(0)).flatten(0, 1);
    const auto rows = quantiles(pairs, probabilities().unsqueeze(1).mul(p).flatten());
    return with_moments(rows, m, v, rows);
  });
}

}  // namespace

const at::Tensor& nodes() {
  static const at::Tensor z = at::arange(kNodes, at::kDouble).sub(kNodes / 2).mul(kStep);
  return z;
}

const at::Tensor& probabilities() {
  static const at::Tensor p = weights_at(nodes());
  return p;
}

at::Tensor normal(const at::Tensor& mean, const at::Tensor& variance) {
  return elementwise({mean, variance}, [](const std::vector<at::Tensor>& in) {
    return in[0] + in[1].clamp_min(0).sqrt() * along_rows(nodes(), in[0]);
  });
}

at::Tensor mean(const at::Tensor& rows) { return mixed(probabilities().unsqueeze(0), rows); }

at::Tensor variance(const at::Tensor& rows) {
  return elementwise({rows}, [](const std::vector<at::Tensor>& in) {
    return mixed(probabilities().unsqueeze(0), in[0].sub(mean(in[0])).square());
  });
}

at::Tensor elementwise(std::vector<at::Tensor> inputs, const Function& function) {
  std::int64_t dimensions = 0;
  for (const auto& x : inputs) dimensions = std::max(dimensions, x.dim());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dimensions), 1);
  std::vector<bool> vary(sizes.size());
  for (auto& x : inputs) {
    while (x.dim() < dimensions) x = x.unsqueeze(0);
    for (std::int64_t d = 1; d < dimensions; ++d) {
      sizes[d] = std::max(sizes[d], x.size(d));
      vary[d] = vary[d] || varies(x, d);
    }
  }
  for (auto& x : inputs)
    for (std::int64_t d = 1; d < dimensions; ++d)
      if (!vary[d]) x = x.narrow(d, 0, 1);
  const auto y = function(inputs);
  sizes[0] = y.size(0);
  return y.expand(sizes);
}

at::Tensor distinct(const at::Tensor& rows) {
  auto x = rows;
  for (std::int64_t d = 1; d < x.dim(); ++d)
    if (!varies(x, d)) x = x.narrow(d, 0, 1);
  return x.reshape({x.size(0), -1});
}

at::Tensor sum(const at::Tensor& x, const at::Tensor& y) {
  return independent(
      x, y, [](const at::Tensor& a, const at::Tensor& b) { return a + b; },
      [](const at::Tensor& a, const at::Tensor& b) { return variance(a) + variance(b); });
}

at::Tensor product(const at::Tensor& x, const at::Tensor& y) {
  return independent(
      x, y, [](const at::Tensor& a, const at::Tensor& b) { return a * b; },
      [](const at::Tensor& a, const at::Tensor& b) {
        const auto u = variance(a), v = variance(b);
        return u * v + u * mean(b).square() + v * mean(a).square();
      });
}

at::Tensor quantiles(const at::Tensor& values, const at::Tensor& probability) {
  const auto flat = values.flatten(1).t().contiguous();  // [values, n]
  const auto [sorted, order] = flat.sort(1);
  const auto share = probability.to(values.device()).index({order});
  const auto z = at::special_ndtri(share.cumsum(1).sub(share, 0.5).clamp(1e-15, 1 - 1e-15));
  const auto wanted = nodes().to(values.device()).expand({flat.size(0), kNodes}).contiguous();
  const auto right = at::searchsorted(z, wanted).clamp(1, flat.size(1) - 1);
  const auto left = right - 1;
  const auto z0 = z.gather(1, left), z1 = z.gather(1, right);
  const auto t = wanted.sub(z0).div(z1.sub(z0).clamp_min(1e-12)).clamp(0, 1).to(flat.options());
  const auto rows = sorted.gather(1, left).lerp(sorted.gather(1, right), t);  // [values, kNodes]
  std::vector<std::int64_t> shape = values.sizes().vec();
  shape[0] = kNodes;
  return rows.t().reshape(shape);
}

at::Tensor of_independent(const at::Tensor& x, const at::Tensor& y, const PairFunction& function) {
  return elementwise({x, y}, [&](const std::vector<at::Tensor>& in) {
    const auto [averaging, p] = grouping(2);
    if (std::max(in[0].numel(), in[1].numel()) * p.numel() > kMostOfPair)
      return function(in[0], mean(in[1]));
    const auto pairs = function(in[0].unsqueeze(1), mixed(averaging, in[1]).unsqueeze(0));
    return quantiles(pairs.flatten(0, 1), probabilities().unsqueeze(1).mul(p).flatten());
  });
}

at::Tensor largest_of(const at::Tensor& rows, double n) {
  // F_max(x) = u at F(x) = u^(1 / n).
  const auto z = at::special_ndtri(at::special_log_ndtr(nodes()).div(n).exp());
  const auto [left, t] = between_nodes(z.unsqueeze(1));
  const auto matrix =
      at::zeros({kNodes, kNodes}, at::kDouble).scatter(1, left, 1 - t).scatter(1, left + 1, t);
  return elementwise({rows}, [&](const std::vector<at::Tensor>& in) {
    return mixed(matrix, quantiles(in[0], probabilities()));
  });
}

at::Tensor average_of(const at::Tensor& rows, double n, double correlation) {
  // Of places z = sqrt(correlation) c + sqrt(1 - correlation) e with c in common: the mean over e,
  // as a function of c.
  const auto z = nodes().mul(std::sqrt(correlation)).unsqueeze(1) +
                 nodes().mul(std::sqrt(1 - correlation)).unsqueeze(0);
  const auto [left, t] = between_nodes(z);
  const auto p = probabilities().expand_as(t);
  const auto matrix = at::zeros({kNodes, kNodes}, at::kDouble)
                          .scatter_add(1, left, p.mul(1 - t))
                          .scatter_add(1, left + 1, p.mul(t));
  return elementwise({rows}, [&](const std::vector<at::Tensor>& in) {
    const auto together = mixed(matrix, in[0]);
    const auto common = variance(together), all = variance(in[0]);
    const auto rest = (all - common).clamp_min(0).div(n);
    return with_moments(together, mean(in[0]), common + rest, in[0]);
  });
}

at::Tensor shrunk(const at::Tensor& rows, double factor) {
  return elementwise({rows}, [&](const std::vector<at::Tensor>& in) {
    const auto m = mean(in[0]);
    return in[0].sub(m).mul(factor).add(m);
  });
}

Values interpolated(const at::Tensor& rows) {
  const auto t = at::arange(kFine, at::kDouble).add(0.5).div(kFine);
  const auto z = nodes().narrow(0, 0, kNodes - 1).unsqueeze(1).add(t.mul(kStep)).flatten();
  const auto weights = t.to(rows.options());
  const auto left = rows.narrow(0, 0, kNodes - 1).unsqueeze(1);
  const auto right = rows.narrow(0, 1, kNodes - 1).unsqueeze(1);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(left.dim()), 1);
  shape[1] = kFine;
  return {left.lerp(right, weights.view(shape)).flatten(0, 1), weights_at(z).to(rows.options())};
}

}  // namespace zsq::quant::distribution
