// SPDX-License-Identifier: Apache-2.0
#include "quant/bias_correction.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "quant/fold_batch_norm.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;

// The tensor that layer `id` of the student reads, as a node of the teacher: names stay.
NodeId teachers_input(const Student& student, const models::Model& teacher, NodeId id) {
  NodeId source = student.graph[id].inputs[0];
  while (activation_quantizer(student.graph[source])) source = student.graph[source].inputs[0];
  return teacher.graph.id_of(student.graph[source].name);
}

// Mean over the images and places of an output, per channel: [C].
at::Tensor channel_means(const at::Tensor& y) {
  return y.dim() == 4 ? y.mean({0, 2, 3}) : y.reshape({-1, y.size(-1)}).mean(0);
}

bool is_shared(const Graph& graph, const std::string& parameter) {
  int uses = 0;
  for (const auto& node : graph.nodes)
    for (const auto& [role, name] : node.params) uses += name == parameter;
  return uses > 1;
}

std::string corrected_name(const models::Node& node, const std::string& role) {
  return node.name + ".corrected_" + role;
}

// Gives a parameter of node `id` the teacher's value less `shift`; one that nodes share becomes the
// node's own.
void subtract(Student& student, const models::Model& teacher, NodeId id, const std::string& role,
              const at::Tensor& shift) {
  auto& node = student.graph[id];
  const auto& original = teacher.graph[teacher.graph.id_of(node.name)].params;
  const auto found = original.find(role);
  const bool absent = found == original.end();
  if (absent || is_shared(teacher.graph, found->second))
    node.params[role] = corrected_name(node, role);
  const auto value = absent ? at::zeros_like(shift) : teacher.parameters.at(found->second);
  student.parameters.set(node.params.at(role), value.sub(shift.view(value.sizes())));
}

}  // namespace

void correct_bias(Student& student, const models::Model& teacher, const WeightSite& site,
                  const at::Tensor& mean) {
  const auto& latent = student.parameters.at(site.parameter);
  const auto error =
      site.op->forward({latent}, student.parameters).sub(teacher.parameters.at(site.parameter));
  const auto shift = channel_means(apply_layer(student.graph[site.layer], mean, error));
  const NodeId behind = batch_norm_behind(student.graph, student.graph.consumers(), site.layer);
  if (behind < 0) return subtract(student, teacher, site.layer, "bias", shift);
  const auto& node = student.graph[behind];
  const auto param = [&](const char* role) { return student.parameters.at(node.params.at(role)); };
  const double eps = models::get_if<models::BatchNorm>(node)->eps;
  subtract(student, teacher, behind, "beta",
           shift.mul(param("gamma")).div(param("variance").add(eps).sqrt()));
}

std::vector<Moments> layer_input_moments(const Student& student, const models::Model& teacher) {
  std::vector<NodeId> inputs;
  for (const auto& site : weight_sites(student))
    inputs.push_back(teachers_input(student, teacher, site.layer));
  return activation_moments(teacher.graph, teacher.parameters, inputs);
}

void correct_bias(Student& student, const models::Model& teacher) {
  const at::NoGradGuard no_grad;
  const auto moments = layer_input_moments(student, teacher);
  const auto sites = weight_sites(student);
  for (std::size_t i = 0; i < sites.size(); ++i)
    correct_bias(student, teacher, sites[i], moments[i].mean);
}

void adopt_corrected_biases(Student& student) {
  for (auto& node : student.graph.nodes)
    for (const char* role : {"bias", "beta"})
      if (student.parameters.contains(corrected_name(node, role)))
        node.params[role] = corrected_name(node, role);
}

}  // namespace zsq::quant
