// SPDX-License-Identifier: Apache-2.0
#include "quant/pair_bound.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include "quant/pair_excess.h"

namespace zsq::quant {
namespace {

// Of pairs [R, 2, P] what same-signed neighbours are beyond the bound, >= 0; [R, P].
at::Tensor excess_of(const at::Tensor& pairs, std::int64_t bound) {
  const at::Tensor first = pairs.select(1, 0), second = pairs.select(1, 1);
  return (first.abs() + second.abs() - bound).clamp_min(0) * (first * second).gt(0);
}

// A row of limits for both neighbours: `used` >= 0 [R, 2, P] is what they need of the bound, and
// the rest is shared. Codes are whole numbers, so the first one's share is rounded down.
at::Tensor shares(const at::Tensor& used, std::int64_t bound, const at::Tensor& largest) {
  const at::Tensor mine = used.select(1, 0), other = used.select(1, 1);
  const at::Tensor first = at::minimum((mine + (bound - mine - other) / 2).floor(), largest);
  return at::stack({first, at::minimum(bound - first, largest)}, 1);
}

}  // namespace

std::int64_t pair_bound_of_layer(const models::Node& layer, const at::Tensor& weight,
                                 const ActivationQuantizer* input) {
  const auto* conv = models::get_if<models::Conv2d>(layer);
  const bool depthwise = conv && conv->groups == weight.size(0) && weight.size(1) == 1;
  if (!input || depthwise) return 0;
  return pair_bound(input->spec().qmax - input->spec().qmin);
}

at::Tensor along_rows(const at::Tensor& t, std::int64_t dims) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(t.dim() ? dims : 0), 1);
  if (!shape.empty()) shape[0] = -1;
  return t.reshape(shape);
}

at::Tensor to_pairs(const at::Tensor& weight) {
  const std::int64_t rows = weight.size(0);
  at::Tensor flat = (weight.dim() == 4 ? weight.permute({0, 2, 3, 1}) : weight).reshape({rows, -1});
  if (flat.size(1) % 2) flat = at::constant_pad_nd(flat, {0, 1});
  return flat.view({rows, -1, 2}).transpose(1, 2).contiguous();
}

at::Tensor from_pairs(const at::Tensor& pairs, const at::Tensor& like) {
  const std::int64_t rows = like.size(0);
  const at::Tensor flat =
      pairs.transpose(1, 2).reshape({rows, -1}).narrow(1, 0, like.numel() / rows);
  if (like.dim() != 4) return flat.reshape(like.sizes());
  return flat.reshape({rows, like.size(2), like.size(3), like.size(1)})
      .permute({0, 3, 1, 2})
      .contiguous();
}

at::Tensor pair_factor(const at::Tensor& pairs, const at::Tensor& scale, std::int64_t bound) {
  const at::Tensor first = pairs.select(1, 0), second = pairs.select(1, 1);
  const at::Tensor sums = (first.abs() + second.abs()) * (first * second).gt(0);
  return (sums.amax(1) / (scale * static_cast<double>(bound))).clamp_min(1);
}

at::Tensor keep_pairs(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                      const QuantizerSpec& spec) {
  if (spec.pair_bound == 0 || !may_exceed_pair_bound(weight.detach(), grid, spec)) return weight;
  at::Tensor kept;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor pairs = to_pairs(weight.detach());
    const at::Tensor scale = along_rows(grid.scale.detach(), 3),
                     zero = along_rows(grid.zero_point.detach(), 3);
    const at::Tensor steps = pairs / scale;
    const at::Tensor codes = at::clamp(steps.round(), spec.qmin - zero, spec.qmax - zero);
    const at::Tensor excess = excess_of(codes, spec.pair_bound);
    if (!excess.any().item<bool>()) return weight;
    // An odd one comes from the code that rounding took farther out.
    const at::Tensor outward = codes.abs() - steps.abs();
    const at::Tensor half = (excess / 2).floor(), odd = excess - 2 * half;
    const at::Tensor first = outward.select(1, 0).ge(outward.select(1, 1));
    const at::Tensor less = at::stack({half + odd * first, half + odd * first.logical_not()}, 1);
    const at::Tensor given_way = (codes - codes.sign() * less) * scale;
    kept = from_pairs(at::where(excess.gt(0).unsqueeze(1), given_way, pairs), weight);
  }
  return weight.requires_grad() ? weight + (kept - weight.detach()) : kept;
}

CodeLimits code_limits(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                       const QuantizerSpec& spec) {
  const at::NoGradGuard no_grad;
  const at::Tensor zero = grid.zero_point.detach();
  const auto ends = [&](std::int64_t dims) {
    const at::Tensor rows = along_rows(zero, dims);
    return CodeLimits{spec.qmin - rows, spec.qmax - rows};
  };
  if (spec.pair_bound == 0) return ends(weight.dim());
  const at::Tensor kept = keep_pairs(weight.detach(), grid, spec);
  const at::Tensor steps = to_pairs(kept) / along_rows(grid.scale.detach(), 3);
  const CodeLimits outer = ends(2);
  const std::int64_t bound = spec.pair_bound;
  // Steps may be a rounding error beyond the bound.
  const auto used = [&](const at::Tensor& side) {
    return side.clamp_min(0) *
           (bound / side.clamp_min(0).sum(1, true).clamp_min(static_cast<double>(bound)));
  };
  return {from_pairs(shares(used(-steps), bound, -outer.lowest).neg(), weight),
          from_pairs(shares(used(steps), bound, outer.highest), weight)};
}

bool breaks_pair_bound(const at::Tensor& codes, std::int64_t bound) {
  return excess_of(to_pairs(codes), bound).any().item<bool>();
}

}  // namespace zsq::quant
