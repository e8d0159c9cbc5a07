// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/sampled_rows.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/special_ndtri.h>

#include <algorithm>

namespace zsq::quant::distribution {
namespace {

constexpr std::int64_t kMostSamples = std::int64_t{1} << 25;  // values of a tensor's samples
constexpr std::int64_t kLeastSamples = 32;
constexpr std::uint64_t kSeed = 0x5a5a;

// z_k = -6 + k / 4: the nodes at -2.5, -1.5, 1.5 and 2.5.
constexpr std::int64_t kLow = 14, kLowInner = 18, kHighInner = 30, kHigh = 34;

// [n, ...], sample i the quantile at (i + 1/2) / n.
at::Tensor quantile_samples(const at::Tensor& rows, std::int64_t n) {
  const auto z = at::special_ndtri(at::arange(n, at::kDouble).add(0.5).div(static_cast<double>(n)));
  const auto place = z.add(6).mul(4).clamp(0, kNodes - 1);
  const auto left = place.floor().clamp_max(kNodes - 2).to(at::kLong);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
  shape[0] = n;
  const auto t = place.sub(left).to(rows.options()).view(shape);
  const auto index = left.to(rows.device());
  return rows.index_select(0, index).lerp(rows.index_select(0, index + 1), t);
}

void extend_tails(at::Tensor& rows) {
  for (std::int64_t k = 0; k < kLow; ++k)
    rows[k].copy_(rows[kLow] + (rows[kLowInner] - rows[kLow]) * (0.25 * double(k - kLow)));
  for (std::int64_t k = kHigh + 1; k < kNodes; ++k)
    rows[k].copy_(rows[kHigh] + (rows[kHigh] - rows[kHighInner]) * (0.25 * double(k - kHigh)));
}

}  // namespace

at::Tensor sampled(const std::vector<at::Tensor>& inputs, const Function& function, double lowest,
                   double highest) {
  std::int64_t largest = 1;
  for (const auto& x : inputs) largest = std::max(largest, x[0].numel());
  const auto n = std::clamp<std::int64_t>(kMostSamples / largest, kLeastSamples, kSamples);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(kSeed);
  std::vector<at::Tensor> samples;
  for (const auto& x : inputs) {
    const auto sorted = quantile_samples(x, n).flatten(1);
    const auto keys = at::rand(sorted.sizes(), generator, at::TensorOptions().dtype(at::kFloat));
    const auto order = std::get<1>(keys.sort(0));
    auto shape = x.sizes().vec();
    shape[0] = n;
    samples.push_back(sorted.gather(0, order.to(sorted.device())).view(shape));
  }
  const auto results = function(samples);
  const auto share = at::full({n}, 1.0 / static_cast<double>(n), at::kDouble);
  auto rows = quantiles(results, share).clone();
  extend_tails(rows);
  return rows.clamp(lowest, highest);
}

}  // namespace zsq::quant::distribution
