// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/gptq.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>

#include <vector>

#include "quant/pair_bound.h"
#include "quant/rounding/lattice.h"

namespace zsq::quant {
namespace {

constexpr double kInsideCell = 0.5 - 1.0 / 64;  // from the code, so that rounding errors matter not
constexpr int kScales = 4;                      // tried on both sides of a scale
constexpr double kScaleStep = 0.05;

struct GroupRounding {
  at::Tensor latent, scale, error;  // f64 [R, K], [R], [R]
};

GroupRounding attempt(const CodeLattice& lattice, const at::Tensor& target,
                      const CodeGrids& grids) {
  const auto [codes, best, error] = lattice.nearest(target, grids);
  const auto inside =
      grids.levels.defined()
          ? codes
          : at::minimum(at::maximum(best, codes.sub(kInsideCell)), codes.add(kInsideCell));
  return {inside.mul(grids.scale.unsqueeze(1)), grids.scale, error};
}

// w [R, K]; h, m [K, K].
GroupRounding round_group(const at::Tensor& w, at::Tensor h, at::Tensor m, CodeGrids grids,
                          bool keep_scale, const GptqOptions& options) {
  const double power = h.diagonal().mean().item<double>();
  const auto unknown = at::eye(h.size(0), h.options()) * (power > 0 ? options.damping * power : 1);
  m = h + options.error_compensation * (m - h) + unknown;
  h = h + unknown;
  const CodeLattice lattice(h);
  const auto target = options.error_compensation > 0 ? lattice.solve(at::matmul(w, m)) : w;
  auto best = attempt(lattice, target, grids);
  const auto start = grids.scale;
  for (int i = -kScales; i <= kScales && !keep_scale; ++i) {
    if (i == 0) continue;
    grids.scale = start * (1 + i * kScaleStep);
    const auto other = attempt(lattice, target, grids);
    const auto better = other.error.lt(best.error);
    best = {at::where(better.unsqueeze(1), other.latent, best.latent),
            at::where(better, other.scale, best.scale), at::where(better, other.error, best.error)};
  }
  return best;
}

}  // namespace

LayerRounding round_layer_by_gptq(const at::Tensor& weight, const InputMoments& moments,
                                  const cuda_kernels::Grid& grid, const QuantizerSpec& spec,
                                  const GptqOptions& options, const at::Tensor& levels) {
  const auto to_cpu = [](const at::Tensor& t) { return t.detach().to(at::kCPU, at::kDouble); };
  const auto h = to_cpu(moments.quantized), m = to_cpu(moments.mixed);
  const std::int64_t groups = h.size(0);
  const auto w = to_cpu(weight).reshape({groups, -1, h.size(1)});
  const auto rows = [&](const at::Tensor& t) {
    return to_cpu(t).expand({weight.size(0)}).contiguous().view({groups, -1});
  };
  const auto scale = rows(grid.scale);
  const auto limits = code_limits(weight, grid, spec);
  const auto of_codes = [&](const at::Tensor& t) {
    return to_cpu(t).expand(weight.sizes()).reshape({groups, -1, h.size(1)}).contiguous();
  };
  const auto lowest = of_codes(limits.lowest), highest = of_codes(limits.highest);
  const auto tables =
      levels.defined() ? to_cpu(levels).view({groups, -1, levels.size(1)}) : at::Tensor();
  const bool shared = grid.scale.dim() == 0;
  const auto n = static_cast<std::size_t>(groups);
  std::vector<at::Tensor> latents(n), scales(n);
  std::vector<double> errors(n);
  const auto round = [&](std::int64_t g) {
    const CodeGrids grids{scale[g], lowest[g], highest[g],
                          tables.defined() ? tables[g] : at::Tensor()};
    auto rounded = round_group(w[g], h[g], m[g], grids, shared, options);
    const auto i = static_cast<std::size_t>(g);
    latents[i] = std::move(rounded.latent);
    scales[i] = std::move(rounded.scale);
    errors[i] = rounded.error.sum().item<double>();
  };
  // A depthwise convolution has hundreds of groups of one row, and a row is all that one thread
  // takes: so threads share the groups there.
  at::parallel_for(0, groups, 1, [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_grad;
    for (std::int64_t g = first; g < last; ++g) round(g);
  });
  LayerRounding result;
  for (const double error : errors) result.error += error;
  result.latent = at::cat(latents).view(weight.sizes()).to(weight.device(), at::kFloat);
  result.scale = shared ? grid.scale : at::cat(scales).to(weight.device(), at::kFloat);
  return result;
}

}  // namespace zsq::quant
