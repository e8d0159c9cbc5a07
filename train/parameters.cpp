// SPDX-License-Identifier: Apache-2.0
#include "train/parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/error.h"

namespace zsq::train {
namespace {

// visit(node, name of the parameter), each parameter once.
template <class Visit>
void for_each_affine(const quant::Student& student, Visit&& visit) {
  std::set<std::string> seen;  // a parameter may serve several nodes
  for (const auto& node : student.graph.nodes)
    for (const char* role : {"gamma", "beta", "bias"}) {
      const auto found = node.params.find(role);
      if (found != node.params.end() && seen.insert(found->second).second)
        visit(node, found->second);
    }
}

}  // namespace

std::vector<losses::RunningMoments> running_moments(const models::Model& teacher) {
  std::vector<losses::RunningMoments> running;
  for (const auto& node : teacher.graph.nodes) {
    const auto* batch_norm = models::get_if<models::BatchNorm>(node);
    if (!batch_norm) continue;
    running.push_back({teacher.parameters.at(node.params.at("mean")),
                       teacher.parameters.at(node.params.at("variance")), batch_norm->eps});
  }
  return running;
}

NamedTensors affine_parameters(const quant::Student& student) {
  NamedTensors affine;
  for_each_affine(student, [&](const models::Node&, const std::string& name) {
    affine.emplace_back(name, student.parameters.at(name));
  });
  return affine;
}

std::vector<at::Tensor> affine_units(const quant::Student& student) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> units;
  for_each_affine(student, [&](const models::Node& node, const std::string& name) {
    const auto gamma = node.params.find("gamma");
    if (gamma != node.params.end()) {
      units.push_back(student.parameters.at(gamma->second).detach().abs());
      return;
    }
    const auto size = student.parameters.at(name).detach().square().mean().sqrt();
    units.push_back(at::where(size.gt(0), size, 1));
  });
  return units;
}

NamedTensors trainable(const NamedTensors& tensors) {
  NamedTensors chosen;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(chosen),
               [](const auto& named) { return named.second.requires_grad(); });
  return chosen;
}

void copy_state(const NamedTensors& state, const NamedTensors& saved) {
  const at::NoGradGuard no_grad;
  const auto mismatch = [](const std::string& what) {
    throw Error(ErrorCode::bad_input,
                "the checkpoint is of another run: " + what +
                    "; resume with the model and the recipe that it was written with");
  };
  const std::map<std::string, at::Tensor> by_name(saved.begin(), saved.end());
  if (state.size() != by_name.size()) {
    mismatch(std::to_string(by_name.size()) + " tensors instead of " +
             std::to_string(state.size()));
  }
  for (const auto& [name, tensor] : state) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) mismatch("it lacks '" + name + "'");
    if (found->second.sizes() != tensor.sizes()) mismatch("'" + name + "' has another shape");
    tensor.copy_(found->second);
  }
}

void restore_ranges(quant::Student& student, const NamedTensors& saved) {
  std::set<std::string> grids;
  for (const auto id : quant::activation_sites(student.graph)) {
    const auto* op = quant::activation_quantizer(student.graph[id]);
    grids.insert({"student/" + op->scale_name(), "student/" + op->zero_point_name()});
  }
  const std::size_t prefix = std::string("student/").size();
  for (const auto& [name, tensor] : saved) {
    if (grids.count(name) != 0 && !student.parameters.contains(name.substr(prefix)))
      student.parameters.set(name.substr(prefix), tensor);
  }
}

}  // namespace zsq::train
