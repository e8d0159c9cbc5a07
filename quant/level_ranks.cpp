// SPDX-License-Identifier: Apache-2.0
#include "quant/level_ranks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <utility>

#include "core/error.h"

namespace zsq::quant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// 1 / g of every level [C, L].
at::Tensor ranks_per_distance(const at::Tensor& levels) {
  const auto gaps = levels.diff();
  const auto below = at::constant_pad_nd(gaps, {1, 0}), above = at::constant_pad_nd(gaps, {0, 1});
  const auto neighbours = below.gt(0).to(levels.dtype()).add(above.gt(0));
  const auto sum = below.add(above);
  return neighbours.div(sum).masked_fill(sum.eq(0), 0);
}

at::Tensor look_up(const at::Tensor& table, const at::Tensor& ranks) {
  return table.gather(1, ranks.flatten(1).to(at::kLong)).view(ranks.sizes());
}

struct WeightsOfRanks : torch::autograd::Function<WeightsOfRanks> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& ranks,
                            const at::Tensor& levels) {
    ctx->save_for_backward({ranks, levels});
    return look_up(levels, ranks);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {grads[0].mul(look_up(ranks_per_distance(saved[1]), saved[0])), at::Tensor()};
  }
};

std::shared_ptr<const WeightQuantizer> in_ranks(const WeightQuantizer& op) {
  QuantizerSpec spec = op.spec();
  spec.qmin = 0;
  spec.qmax = (std::int64_t{1} << spec.num_bits) - 1;
  spec.format = NumberFormat::ranks;
  return std::make_shared<WeightQuantizer>(op.name(), spec, op.per_channel(),
                                           /*range_every_step=*/false);
}

}  // namespace

at::Tensor weights_of_ranks(const at::Tensor& ranks, const at::Tensor& levels) {
  return WeightsOfRanks::apply(ranks, levels);
}

at::Tensor to_weights(const WeightQuantizer& op, const at::Tensor& quantized,
                      const models::ParameterStore& parameters) {
  if (op.spec().format != NumberFormat::ranks) return quantized;
  return weights_of_ranks(quantized, parameters.at(op.levels_name()));
}

at::Tensor ranks_of_weights(const at::Tensor& weights, const at::Tensor& levels) {
  const auto count = levels.size(1);
  const auto middles = levels.narrow(1, 0, count - 1).add(levels.narrow(1, 1, count - 1)).div(2);
  return at::searchsorted(middles, weights.flatten(1).contiguous())
      .to(weights.dtype())
      .view(weights.sizes());
}

LevelRanks::LevelRanks(Student& student) : student_(student), graph_(student.graph) {
  const at::NoGradGuard no_grad;
  models::ParameterStore& store = student.parameters;
  std::map<std::string, const WeightQuantizer*> owner;  // of a latent weight
  std::map<const WeightQuantizer*, models::Custom> replaced;
  for (const WeightSite& site : weight_sites(student)) {
    const bool first = owner.emplace(site.parameter, site.op).second;
    const LevelGrids grids = level_grids(*site.op, store);
    if (owner.at(site.parameter) != site.op &&
        (grids.levels.defined() || replaced.contains(owner.at(site.parameter))))
      throw Error(
          ErrorCode::unsupported_model,
          "fine-tuning needs one table of levels for a weight, and the layers that share '" +
              site.parameter + "' have different bits");
    if (!grids.levels.defined()) continue;
    if (first) {
      layers_.push_back({site.parameter, site.op->scale_name(), site.op->levels_name(), grids});
      replaced[site.op] = {in_ranks(*site.op)};
      const auto levels = grids.levels.mul(grids.scale.unsqueeze(1));
      store.set(site.parameter, ranks_of_weights(store.at(site.parameter), levels));
      store.set(site.op->scale_name(), at::ones_like(grids.scale));
      store.set(site.op->levels_name(), levels);
    }
    student.graph[site.quantizer].op = replaced.at(site.op);
  }
}

void LevelRanks::restore() {
  const at::NoGradGuard no_grad;
  models::ParameterStore& store = student_.parameters;
  for (const Layer& layer : layers_) {
    const auto last = static_cast<double>(layer.grids.levels.size(1) - 1);
    const auto ranks = store.at(layer.parameter).detach().round().clamp(0, last);
    store.set(layer.parameter, look_up(store.at(layer.levels), ranks));
    store.set(layer.scale, layer.grids.scale);
    store.set(layer.levels, layer.grids.levels);
  }
  // Swapped, so that nobody who still knows a quantizer of the training holds a pointer to nothing.
  std::swap(student_.graph, graph_);
  layers_.clear();
}

}  // namespace zsq::quant
