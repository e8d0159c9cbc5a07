// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/layer_errors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>
#include <limits>

#include "models/execute.h"
#include "quant/data_free/moments.h"

namespace zsq::pipeline {
namespace {

using models::NodeId;

// Sums of squares over what was added.
struct Powers {
  double signal = 0, noise = 0;

  void add(const at::Tensor& exact, const at::Tensor& approximate) {
    const auto square = [](const at::Tensor& t) {
      return std::pow(at::linalg_vector_norm(t, 2, {}, false, at::kDouble).item<double>(), 2);
    };
    signal += square(exact);
    noise += square(approximate - exact);
  }
  double decibels() const {
    if (noise == 0) return std::numeric_limits<double>::infinity();
    return signal > 0 ? 10 * std::log10(signal / noise) : -std::numeric_limits<double>::infinity();
  }
};

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
  const auto sites = quant::weight_sites(student);
  std::vector<std::vector<const quant::ActivationQuantizer*>> quantizers;
  models::Taps taps;
  for (const auto& site : sites) {
    NodeId source = student.graph[site.layer].inputs[0];
    quantizers.push_back(input_quantizers(student.graph, source));
    taps.nodes.push_back(teacher.graph.id_of(student.graph[source].name));
  }
  // Convolutions want weights as the images lie, and these are used for all images.
  const auto laid_out = [](const at::Tensor& t) {
    return t.dim() == 4 ? t.contiguous(at::MemoryFormat::ChannelsLast) : t;
  };
  models::ParameterStore parameters = teacher.parameters;
  std::vector<at::Tensor> quantized;
  for (const auto& site : sites) {
    parameters.set(site.parameter, laid_out(parameters.at(site.parameter)));
    quantized.push_back(
        laid_out(site.op->forward({student.parameters.at(site.parameter)}, student.parameters)));
  }
  std::vector<Powers> outputs(sites.size());
  for (const at::Tensor& few : images.split(2)) {  // the values of all layers are kept at once
    models::execute(teacher.graph, parameters, laid_out(few), &taps);
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const auto& layer = student.graph[sites[i].layer];
      at::Tensor input = taps.values[i];
      const auto exact = quant::apply_layer(layer, input, parameters.at(sites[i].parameter));
      for (const auto* op : quantizers[i]) input = op->forward({input}, student.parameters);
      outputs[i].add(exact, quant::apply_layer(layer, input, quantized[i]));
    }
  }
  std::map<std::string, LayerError> errors;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    Powers weight;
    weight.add(parameters.at(sites[i].parameter), quantized[i]);
    errors[student.graph[sites[i].layer].name] = {weight.decibels(), outputs[i].decibels()};
  }
  return errors;
}

}  // namespace zsq::pipeline
