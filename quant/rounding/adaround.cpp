// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/adaround.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones_like.h>

#include <cmath>

#include "quant/level_table.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

// The units that codes are counted in, so that the error has the same weight beside the regulariser
// on any grid: the scale, or the mean distance of a table's levels. [], [C] or, of lowest and
// highest, what broadcasts to the weight.
struct SoftSteps {
  at::Tensor size, lowest, highest;
  at::Tensor table;  // [C, L]; undefined: consecutive integers
};

SoftSteps steps_of(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                   const QuantizerSpec& spec, const at::Tensor& levels) {
  if (!levels.defined()) {
    auto [lowest, highest] = code_limits(weight, grid, spec);
    return {grid.scale, std::move(lowest), std::move(highest), {}};
  }
  const auto first = levels.slice(1, 0, 1), last = levels.slice(1, -1);
  const auto step = last.sub(first).div(levels.size(1) - 1);
  return {grid.scale.mul(step.squeeze(1)), along_rows(first.div(step), weight.dim()),
          along_rows(last.div(step), weight.dim()), levels.div(step).cpu()};
}

}  // namespace

LayerRounding round_layer_by_adaround(const at::Tensor& weight, const InputMoments& moments,
                                      const cuda_kernels::Grid& grid, const QuantizerSpec& spec,
                                      const GptqOptions& options, const at::Tensor& levels) {
  constexpr int kSteps = 600;
  constexpr double kRate = 1e-2, kFirst = 0.9, kSecond = 0.999;  // of Adam
  const auto f32 = at::TensorOptions().dtype(at::kFloat);
  auto h = moments.quantized.to(f32);  // [G, K, K]
  const auto power = h.diagonal(0, 1, 2).mean(1, true).unsqueeze(2).clamp_min(1e-20);
  h = h.div(power).add(at::eye(h.size(1), f32).mul(options.damping));
  const auto rows = [&](const at::Tensor& t) {
    return t.detach().cpu().expand({weight.size(0)}).reshape({h.size(0), -1, 1});
  };
  const SoftSteps steps = steps_of(weight.detach(), grid, spec, levels);
  const auto codes_at = [&](const at::Tensor& t) {
    return t.cpu().expand_as(weight).reshape({h.size(0), -1, h.size(1)});
  };
  const auto scale = rows(steps.size), lowest = codes_at(steps.lowest),
             highest = codes_at(steps.highest);
  const auto w = weight.detach().cpu().reshape({h.size(0), -1, h.size(1)}).div(scale);
  auto below = w.floor(), gap = at::ones_like(scale);
  if (levels.defined()) {
    const auto between = neighbours(w.flatten(0, 1), steps.table);
    below = between.below.view(w.sizes());
    gap = between.gap.view(w.sizes());
  }
  const auto share = w.sub(below).div(gap).masked_fill(gap.eq(0), 0);
  auto v = share.add(0.1).div(1.2).logit(), m = v.mul(0), n = v.mul(0);
  for (int step = 1; step <= kSteps; ++step) {
    const double beta = 20 - 18.0 * step / kSteps;
    const auto p = v.sigmoid(), open = p.mul(1.2).sub(0.1), gate = open.clamp(0, 1);
    const auto code = below.add(gate.mul(gap)), error = at::clamp(code, lowest, highest).sub(w);
    const auto inside = code.ge(lowest).logical_and(code.le(highest));
    const auto away = gate.mul(2).sub(1);
    const auto slope = error.matmul(h).mul(2).mul(inside).mul(gap).sub(
        away.abs().pow(beta - 1).mul(away.sign()).mul(2 * beta * 0.01));
    const auto g = slope.mul(open.eq(gate)).mul(p.mul(p.neg().add(1)).mul(1.2));
    m.mul_(kFirst).add_(g, 1 - kFirst);
    n.mul_(kSecond).addcmul_(g, g, 1 - kSecond);
    v.sub_(
        m.div(1 - std::pow(kFirst, step)).div(n.div(1 - std::pow(kSecond, step)).sqrt().add(1e-8)),
        kRate);
  }
  const auto codes = at::clamp(below.add(v.sigmoid().ge(0.5).mul(gap)), lowest, highest);
  const auto error = codes.sub(w).mul(scale);
  return {codes.mul(scale).view(weight.sizes()).to(weight.device()), grid.scale,
          error.matmul(h.mul(power)).mul(error).sum().item<double>()};
}

}  // namespace zsq::quant
