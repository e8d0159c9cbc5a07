// SPDX-License-Identifier: Apache-2.0
#include "quant/level_ranks.h"
#include "quant/weight_layers.h"

namespace zsq::quant {
namespace {

using cuda_kernels::Surrogate;

Surrogate surrogate_of(Mode mode) {
  return mode == Mode::paper ? Surrogate::pass_through : Surrogate::clipped;
}

template <class Quantizer>
const Quantizer* quantizer_at(const models::Node& node) {
  const auto* custom = models::get_if<models::Custom>(node);
  return custom ? dynamic_cast<const Quantizer*>(custom->op.get()) : nullptr;
}

}  // namespace

QuantizerSpec weight_spec(std::int64_t num_bits, bool symmetric, Mode mode) {
  const std::int64_t half = std::int64_t{1} << (num_bits - 1);
  const std::int64_t unused = symmetric && num_bits == 8 ? 1 : 0;
  return {num_bits, unused - half, half - 1, symmetric, surrogate_of(mode)};
}

QuantizerSpec level_table_spec(std::int64_t num_bits, Mode mode) {
  return {num_bits,           -kLargestLevel,     kLargestLevel,
          /*symmetric=*/true, surrogate_of(mode), NumberFormat::level_table};
}

QuantizerSpec activation_spec(std::int64_t num_bits, Mode mode, bool symmetric) {
  const std::int64_t codes = std::int64_t{1} << num_bits, qmin = symmetric ? -codes / 2 : 0;
  return {num_bits, qmin, qmin + codes - 1, symmetric, surrogate_of(mode)};
}

at::Tensor ActivationQuantizer::forward(const std::vector<at::Tensor>& inputs,
                                        const models::ParameterStore& parameters) const {
  if (!parameters.contains(scale_name())) return inputs[0];
  return cuda_kernels::fake_quant(inputs[0], parameters.at(scale_name()),
                                  parameters.at(zero_point_name()), spec_.qmin, spec_.qmax,
                                  spec_.surrogate);
}

cuda_kernels::Grid WeightQuantizer::grid(const at::Tensor& weight,
                                         const models::ParameterStore& parameters) const {
  return cuda_kernels::layer_grids({weight_layer(*this, weight, parameters)})[0];
}

at::Tensor WeightQuantizer::forward(const std::vector<at::Tensor>& inputs,
                                    const models::ParameterStore& parameters) const {
  return to_weights(
      *this, cuda_kernels::fake_quant_layers({weight_layer(*this, inputs[0], parameters)})[0],
      parameters);
}

std::vector<WeightSite> weight_sites(const Student& student) {
  std::vector<WeightSite> sites;
  const auto& graph = student.graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& inputs = graph.nodes[i].inputs;
    if (inputs.size() < 2) continue;
    const auto* op = quantizer_at<WeightQuantizer>(graph[inputs[1]]);
    if (!op) continue;
    const auto& latent = graph[graph[inputs[1]].inputs[0]];
    sites.push_back({inputs[1], static_cast<models::NodeId>(i), latent.params.at("value"), op});
  }
  return sites;
}

const ActivationQuantizer* activation_quantizer(const models::Node& node) {
  return quantizer_at<ActivationQuantizer>(node);
}

std::vector<models::NodeId> activation_sites(const models::Graph& graph) {
  std::vector<models::NodeId> sites;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (activation_quantizer(graph.nodes[i])) sites.push_back(static_cast<models::NodeId>(i));
  return sites;
}

void refresh_weight_grids(Student& student) {
  for (const auto& site : weight_sites(student)) {
    if (!site.op->range_every_step()) continue;
    auto grid = site.op->grid(student.parameters.at(site.parameter), student.parameters);
    student.parameters.set(site.op->scale_name(), std::move(grid.scale));
    student.parameters.set(site.op->zero_point_name(), std::move(grid.zero_point));
  }
}

}  // namespace zsq::quant
