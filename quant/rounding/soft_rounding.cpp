// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/soft_rounding.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/sigmoid.h>

#include "quant/level_table.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

constexpr double kStretch = 1.2, kBelow = -0.1;

at::Tensor gate(const at::Tensor& v) {
  return at::sigmoid(v).mul(kStretch).add(kBelow).clamp(0, 1);
}

}  // namespace

SoftRounding::SoftRounding(const WeightQuantizer& quantizer, const at::Tensor& weight,
                           const models::ParameterStore& parameters)
    : scale_name_(quantizer.scale_name()) {
  const at::NoGradGuard no_grad;
  const auto [scale, zero_point] = quantizer.grid(weight, parameters);
  const auto steps = weight.div(along_rows(scale, weight.dim()));
  floor_ = steps.floor();
  auto share = steps.sub(floor_);
  if (const auto levels = level_grids(quantizer, parameters).levels; levels.defined()) {
    auto [below, gap] = neighbours(steps, levels);
    floor_ = below;
    gap_ = gap;
    share = steps.sub(floor_).div(gap_).masked_fill(gap_.eq(0), 0);
  }
  logits_ = at::logit(share.sub(kBelow).div(kStretch)).requires_grad_(true);
  auto limits = code_limits(weight, {scale, zero_point}, quantizer.spec());
  lowest_ = std::move(limits.lowest);
  highest_ = std::move(limits.highest);
}

at::Tensor SoftRounding::on_grid(const at::Tensor& share,
                                 const models::ParameterStore& parameters) const {
  const auto steps = (gap_.defined() ? share.mul(gap_) : share).add(floor_);
  return at::clamp(steps, lowest_, highest_)
      .mul(along_rows(parameters.at(scale_name_), floor_.dim()));
}

at::Tensor SoftRounding::forward(const std::vector<at::Tensor>&,
                                 const models::ParameterStore& parameters) const {
  return on_grid(gate(logits_), parameters);
}

at::Tensor SoftRounding::rounding_regularizer(double sharpness) const {
  return gate(logits_).mul(2).sub(1).abs().pow(sharpness).mean().neg().add(1);
}

at::Tensor SoftRounding::decided(const models::ParameterStore& parameters) const {
  const at::NoGradGuard no_grad;
  return on_grid(gate(logits_).ge(0.5).to(floor_.scalar_type()), parameters);
}

}  // namespace zsq::quant
