// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/layer_errors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "models/execute.h"
#include "quant/data_free/equalize.h"
#include "quant/data_free/moments.h"

namespace zsq::pipeline {
namespace {

using models::NodeId;

double decibels(const at::Tensor& exact, const at::Tensor& approximate) {
  const auto power = [](const at::Tensor& t) {
    return t.to(at::kDouble).square().sum().item<double>();
  };
  const double noise = power(approximate - exact), signal = power(exact);
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return signal > 0 ? 10 * std::log10(signal / noise) : -std::numeric_limits<double>::infinity();
}

// The quantizers between a layer and the teacher's tensor that it reads, in order of execution.
std::vector<const quant::ActivationQuantizer*> input_quantizers(const models::Graph& graph,
                                                                NodeId& source) {
  std::vector<const quant::ActivationQuantizer*> chain;
  for (; const auto* op = quant::activation_quantizer(graph[source]);
       source = graph[source].inputs[0])
    chain.insert(chain.begin(), op);
  return chain;
}

}  // namespace

std::map<std::string, LayerError> layer_errors(const models::Model& teacher,
                                               const quant::Student& student,
                                               const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const models::Model network = quant::equalize(teacher, student.options);
  const auto sites = quant::weight_sites(student);
  std::vector<std::vector<const quant::ActivationQuantizer*>> quantizers;
  models::Taps taps;
  for (const auto& site : sites) {
    NodeId source = student.graph[site.layer].inputs[0];
    quantizers.push_back(input_quantizers(student.graph, source));
    taps.nodes.push_back(network.graph.id_of(student.graph[source].name));
  }
  models::execute(network.graph, network.parameters, images, &taps);
  std::map<std::string, LayerError> errors;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto& site = sites[i];
    const auto& layer = student.graph[site.layer];
    const auto& weight = network.parameters.at(site.parameter);
    const auto quantized =
        site.op->forward({student.parameters.at(site.parameter)}, student.parameters);
    at::Tensor input = taps.values[i];
    const auto exact = quant::apply_layer(layer, input, weight);
    for (const auto* op : quantizers[i]) input = op->forward({input}, student.parameters);
    errors[layer.name] = {decibels(weight, quantized),
                          decibels(exact, quant::apply_layer(layer, input, quantized))};
  }
  return errors;
}

}  // namespace zsq::pipeline
