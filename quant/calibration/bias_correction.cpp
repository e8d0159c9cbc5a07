// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/bias_correction.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <ranges>

#include "models/batch_norm_chain.h"
#include "quant/data_free/inferred_values.h"
#include "quant/data_free/moments.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;

bool is_shared(const Graph& graph, const std::string& parameter) {
  int uses = 0;
  for (const auto& node : graph.nodes)
    for (const auto& [role, name] : node.params) uses += name == parameter;
  return uses > 1;
}

std::string corrected_name(const models::Node& node, const std::string& role) {
  return node.name + ".corrected_" + role;
}

// Gives a parameter of node `id` the teacher's value less `shift`.
void subtract(Student& student, const models::Model& teacher, NodeId id, const std::string& role,
              const at::Tensor& shift) {
  const auto& original = teacher.graph[teacher.graph.id_of(student.graph[id].name)].params;
  const auto found = original.find(role);
  const auto value =
      found == original.end() ? at::zeros_like(shift) : teacher.parameters.at(found->second);
  set_own(student, teacher, id, role, value.sub(shift.view(value.sizes())));
}

// What lies between a tensor of the teacher, whose nodes' names stay, and a layer of the student.
struct Quantizers {
  std::string source;
  std::vector<const ActivationQuantizer*> chain;  // the last one first

  at::Tensor act(at::Tensor x, const models::ParameterStore& parameters) const {
    for (const auto* q : std::views::reverse(chain)) x = q->forward({x}, parameters);
    return x;
  }
};

Quantizers quantizers_before(const Student& student, const WeightSite& site) {
  Quantizers found;
  NodeId source = student.graph[site.layer].inputs[0];
  while (const auto* quantizer = activation_quantizer(student.graph[source])) {
    found.chain.push_back(quantizer);
    source = student.graph[source].inputs[0];
  }
  found.source = student.graph[source].name;
  return found;
}

}  // namespace

at::Tensor channel_means(const models::Node& layer, const at::Tensor& x) {
  return models::is<models::Conv2d>(layer) ? x.mean({0, 2, 3})
                                           : x.reshape({-1, x.size(-1)}).mean(0);
}

void set_own(Student& student, const models::Model& teacher, NodeId id, const std::string& role,
             const at::Tensor& value) {
  auto& node = student.graph[id];
  const auto& original = teacher.graph[teacher.graph.id_of(node.name)].params;
  const auto found = original.find(role);
  if (found == original.end() || is_shared(teacher.graph, found->second))
    node.params[role] = corrected_name(node, role);
  student.parameters.set(node.params.at(role), value);
}

void correct_bias(Student& student, const models::Model& teacher, const WeightSite& site,
                  const LayerInput& input) {
  const auto& latent = student.parameters.at(site.parameter);
  const auto output = [&](const at::Tensor& mean, const at::Tensor& weight) {
    return apply_layer(student.graph[site.layer], mean, weight);
  };
  const auto shift =
      channel_means(student.graph[site.layer],
                    output(input.quantized_mean, site.op->forward({latent}, student.parameters)) -
                        output(input.mean, teacher.parameters.at(site.parameter)));
  const NodeId behind =
      models::following_batch_norm(student.graph, student.graph.consumers(), site.layer);
  if (behind < 0) return subtract(student, teacher, site.layer, "bias", shift);
  const auto& node = student.graph[behind];
  const auto param = [&](const char* role) { return student.parameters.at(node.params.at(role)); };
  const double eps = models::get_if<models::BatchNorm>(node)->eps;
  subtract(student, teacher, behind, "beta",
           shift.mul(param("gamma")).div(param("variance").add(eps).sqrt()));
}

std::vector<LayerInput> infer_layer_inputs(const Student& student, const models::Model& teacher) {
  std::vector<NodeId> sources;
  std::vector<Quantizers> quantizers;
  for (const auto& site : weight_sites(student)) {
    quantizers.push_back(quantizers_before(student, site));
    sources.push_back(teacher.graph.id_of(quantizers.back().source));
  }
  const InferredValues values(teacher.graph, teacher.parameters, sources, Purpose::estimates,
                              pixel_law(student.options.image_lo, student.options.image_hi));
  std::vector<LayerInput> inputs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto mean_of = [&](const auto& function) { return values.mean_of(sources[i], function); };
    const auto mean = mean_of([](const at::Tensor& x) { return x; });
    const auto square = mean_of([](const at::Tensor& x) { return x.square(); });
    const auto quantized =
        mean_of([&](const at::Tensor& x) { return quantizers[i].act(x, student.parameters); });
    inputs.push_back({mean, square.sub(mean.square()).clamp_min(0), quantized});
  }
  return inputs;
}

void correct_bias(Student& student, const models::Model& teacher,
                  const std::vector<LayerInput>& inputs) {
  const at::NoGradGuard no_grad;
  const auto sites = weight_sites(student);
  for (std::size_t i = 0; i < sites.size(); ++i)
    correct_bias(student, teacher, sites[i], inputs[i]);
}

void correct_bias(Student& student, const models::Model& teacher) {
  const at::NoGradGuard no_grad;
  correct_bias(student, teacher, infer_layer_inputs(student, teacher));
}

void adopt_corrected_biases(Student& student) {
  for (auto& node : student.graph.nodes)
    for (const char* role : {"bias", "beta", "gamma"})
      if (student.parameters.contains(corrected_name(node, role)))
        node.params[role] = corrected_name(node, role);
}

}  // namespace zsq::quant
