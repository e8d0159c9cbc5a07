// SPDX-License-Identifier: Apache-2.0
#include "quant/fold_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "models/batch_norm_chain.h"
#include "quant/level_table.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

// Codes of one layer as floats, which hold them exactly. weight [C, n], the rest [C].
struct Codes {
  at::Tensor q, zero_point, scale, bias;
  at::Tensor levels;  // undefined: consecutive integers
};

void fold(Codes& codes, const Student& student, const models::Node& batch_norm,
          const QuantizerSpec& spec) {
  const auto param = [&](const char* role) {
    return student.parameters.at(batch_norm.params.at(role)).to(at::kDouble);
  };
  const double eps = models::get_if<models::BatchNorm>(batch_norm)->eps;
  const auto t = param("gamma").div(param("variance").add(eps).sqrt());
  codes.scale = codes.scale.mul(t.abs());
  codes.bias = codes.bias.sub(param("mean")).mul(t).add(param("beta"));
  const auto mirror = t.lt(0);
  const double ends = static_cast<double>(spec.qmin + spec.qmax);
  codes.q = at::where(mirror.unsqueeze(1), codes.q.neg().add(ends), codes.q);
  codes.zero_point = at::where(mirror, codes.zero_point.neg().add(ends), codes.zero_point);
  if (codes.levels.defined())
    codes.levels = at::where(mirror.unsqueeze(1), codes.levels.neg().flip(1), codes.levels);
}

at::Tensor levels_of(const Codes& codes, const QuantizerSpec& spec) {
  if (codes.levels.defined()) return codes.levels.to(at::kInt);
  if (spec.num_bits > 4) return {};
  const auto all = at::arange(spec.qmin, spec.qmax + 1, codes.zero_point.options());
  return all.sub(codes.zero_point.unsqueeze(1)).to(at::kInt);
}

// Step of the layer's input, 0 if it is not quantized.
double input_scale(const Student& student, models::NodeId layer) {
  const auto& graph = student.graph;
  const auto* op = activation_quantizer(graph[graph[layer].inputs[0]]);
  if (!op || !student.parameters.contains(op->scale_name())) return 0;
  return student.parameters.at(op->scale_name()).item<double>();
}

// A channel that adds nothing to its bias may have any scale, and one with almost no weights a
// scale so small that bias / (input scale * scale) leaves int32. Both get a scale that keeps it
// below 2^30, and codes rounded to it: an error of half a step, 2^-31 of the bias for one step of
// the input.
void enlarge_tiny_scales(Codes& codes, double input_scale) {
  const auto zero_point = codes.zero_point.unsqueeze(1);
  const auto steps = codes.q.sub(zero_point);
  const auto dead =
      steps.eq(0).all(1).logical_or(codes.scale.lt(std::numeric_limits<float>::min()));
  const auto live = codes.scale.masked_select(dead.logical_not());
  auto scale = codes.scale.masked_fill(dead, live.numel() ? live.max().item<double>() : 1.0);
  if (input_scale > 0)
    scale = scale.maximum(codes.bias.abs().div(input_scale * (std::int64_t{1} << 30)));
  const auto ratio = codes.scale.div(scale).unsqueeze(1);
  codes.q = steps.mul(ratio).round().add(zero_point);
  codes.scale = scale;
}

}  // namespace

IntegerWeights integer_weights(const Student& student, const WeightSite& site) {
  const at::NoGradGuard no_grad;
  const auto& weight = student.parameters.at(site.parameter);
  const auto& spec = site.op->spec();
  const auto& layer = student.graph[site.layer];
  const auto grid = site.op->grid(weight, student.parameters);
  const std::int64_t channels = weight.size(0);
  const auto q = cuda_kernels::quantize(keep_pairs(weight, grid, spec), grid.scale, grid.zero_point,
                                        spec.qmin, spec.qmax);
  Codes codes{q.to(at::kDouble).reshape({channels, -1}),
              grid.zero_point.to(at::kDouble).expand({channels}),
              grid.scale.to(at::kDouble).expand({channels}),
              at::zeros({channels}, weight.options().dtype(at::kDouble)),
              level_grids(*site.op, student.parameters).levels};
  const auto bias = layer.params.find("bias");
  if (bias != layer.params.end()) codes.bias = student.parameters.at(bias->second).to(at::kDouble);

  IntegerWeights result;
  result.batch_norm =
      models::following_batch_norm(student.graph, student.graph.consumers(), site.layer);
  if (result.batch_norm >= 0) fold(codes, student, student.graph[result.batch_norm], spec);
  enlarge_tiny_scales(codes, input_scale(student, site.layer));
  result.codes = codes.q.to(at::kInt).reshape(weight.sizes());
  result.zero_point = codes.zero_point.to(at::kInt).contiguous();
  result.levels = levels_of(codes, spec);
  result.scale = codes.scale.to(at::kFloat).contiguous();
  result.bias = codes.bias.to(at::kFloat).contiguous();
  return result;
}

at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& weight) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
  shape[0] = -1;
  return vector.view(shape);
}

at::Tensor steps_of(const IntegerWeights& weights) {
  return weights.codes - per_channel(weights.zero_point, weights.codes);
}

at::Tensor values_of(const IntegerWeights& weights) {
  return steps_of(weights) * per_channel(weights.scale, weights.codes);
}

}  // namespace zsq::quant
