// SPDX-License-Identifier: Apache-2.0
#include "quant/weight_layers.h"

#include "quant/level_ranks.h"
#include "quant/pair_bound.h"

namespace zsq::quant {

cuda_kernels::QuantLayer weight_layer(const WeightQuantizer& op, const at::Tensor& weight,
                                      const models::ParameterStore& parameters) {
  const auto& spec = op.spec();
  cuda_kernels::QuantLayer layer{weight, spec.qmin,      spec.qmax,       spec.surrogate,
                                 {},     spec.symmetric, op.per_channel()};
  if (!op.range_every_step())
    layer.grid = {parameters.at(op.scale_name()), parameters.at(op.zero_point_name())};
  if (spec.pair_bound == 0) return layer;
  // A range of every step is that of the weights before pairs give way.
  if (op.range_every_step()) layer.grid = cuda_kernels::layer_grids({layer})[0];
  layer.weight = keep_pairs(weight, layer.grid, spec);
  return layer;
}

std::vector<cuda_kernels::QuantLayer> weight_layers(const std::vector<WeightSite>& sites,
                                                    const models::ParameterStore& parameters) {
  std::vector<cuda_kernels::QuantLayer> layers;
  for (const auto& site : sites)
    layers.push_back(weight_layer(*site.op, parameters.at(site.parameter), parameters));
  return layers;
}

models::Graph take_quantized_weights(models::Graph student) {
  for (auto& node : student.nodes) {
    const auto* custom = models::get_if<models::Custom>(node);
    if (!custom || !dynamic_cast<const WeightQuantizer*>(custom->op.get())) continue;
    node = {node.name, models::Parameter{}, {}, {{"value", node.name}}};
  }
  return student;
}

models::ParameterStore with_quantized_weights(const Student& student,
                                              const std::vector<WeightSite>& sites) {
  models::ParameterStore store = student.parameters;
  const auto weights = cuda_kernels::fake_quant_layers(weight_layers(sites, store));
  for (std::size_t i = 0; i < sites.size(); ++i)
    store.set(student.graph[sites[i].quantizer].name, to_weights(*sites[i].op, weights[i], store));
  return store;
}

}  // namespace zsq::quant
