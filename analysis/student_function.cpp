// SPDX-License-Identifier: Apache-2.0
#include "analysis/student_function.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>

#include "losses/divergence.h"
#include "models/execute.h"

namespace zsq::analysis {
namespace {

std::set<std::string> activation_grids(const models::Graph& graph) {
  std::set<std::string> names;
  for (const models::Node& node : graph.nodes)
    if (const auto* op = quant::activation_quantizer(node))
      names.insert({op->scale_name(), op->zero_point_name()});
  return names;
}

}  // namespace

const char* name_of(Objective objective) {
  if (objective == Objective::both) return "cross-entropy + KL";
  return objective == Objective::cross_entropy ? "cross-entropy" : "KL divergence";
}

at::Tensor loss_of(Objective objective, const at::Tensor& logits, const Sample& sample,
                   double tau) {
  at::Tensor loss;
  if (objective != Objective::kl_divergence)
    loss = losses::cross_entropy(sample.kind, logits, sample.targets);
  if (objective == Objective::cross_entropy) return loss;
  const auto kl = losses::divergence(sample.kind, logits, sample.logits, tau,
                                     static_cast<double>(logits.size(0)));
  return loss.defined() ? loss + kl : kl;
}

StudentFunction::StudentFunction(const quant::Student& student, bool quantized)
    : student_(student), quantized_(quantized), sites_(quant::weight_sites(student)) {
  for (const quant::WeightSite& site : sites_) layers_.push_back(student.graph[site.layer].name);
  graph_ = quant::take_quantized_weights(quantized ? quant::fuse_activations(student.graph)
                                                   : student.graph);
  const std::set<std::string> left_out =
      quantized ? std::set<std::string>{} : activation_grids(student.graph);
  for (const std::string& name : student.parameters.names())
    if (!left_out.contains(name)) parameters_.set(name, student.parameters.at(name).detach());
}

Tensors StudentFunction::weights() const {
  Tensors weights;
  for (const quant::WeightSite& site : sites_)
    weights.push_back(parameters_.at(site.parameter).detach().clone());
  return weights;
}

at::Tensor StudentFunction::logits(const at::Tensor& images, const Tensors& weights) const {
  models::ParameterStore store = parameters_;
  Tensors used = weights;
  if (quantized_) {
    std::vector<cuda_kernels::QuantLayer> layers;
    for (std::size_t i = 0; i < sites_.size(); ++i)
      layers.push_back(quant::weight_layer(*sites_[i].op, weights[i], parameters_));
    used = cuda_kernels::fake_quant_layers(layers);
  }
  for (std::size_t i = 0; i < sites_.size(); ++i)
    store.set(student_.graph[sites_[i].quantizer].name, used[i]);
  return models::execute(graph_, store, images);
}

double StudentFunction::loss(Objective objective, const Sample& sample, double tau,
                             const Tensors& weights) const {
  const at::NoGradGuard no_grad;
  return loss_of(objective, logits(sample.images, weights), sample, tau).item<double>();
}

Tensors StudentFunction::gradient(Objective objective, const Sample& sample, double tau,
                                  const Tensors& weights) const {
  Tensors leaves;
  for (const at::Tensor& weight : weights)
    leaves.push_back(weight.detach().clone().requires_grad_(true));
  return torch::autograd::grad({loss_of(objective, logits(sample.images, leaves), sample, tau)},
                               leaves);
}

}  // namespace zsq::analysis
