// SPDX-License-Identifier: Apache-2.0
#include "train/scale_steps.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/mul.h>

#include <cmath>

namespace zsq::train {
namespace {

constexpr std::int64_t kFineBits = 8;  // so many bits leave nothing to learn
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

NamedTensors logs_of(const models::ParameterStore& parameters, const std::set<std::string>& names) {
  NamedTensors logs;
  for (const auto& name : names) logs.emplace_back(name, at::log(parameters.at(name).detach()));
  return logs;
}

}  // namespace

std::set<std::string> learnable_scales(const quant::Student& student, LearnableScales which) {
  std::set<std::string> names;
  if (which == LearnableScales::none) return names;
  for (const auto id : quant::activation_sites(student.graph)) {
    const auto* op = quant::activation_quantizer(student.graph[id]);
    if (op->spec().num_bits < kFineBits) names.insert(op->scale_name());
  }
  if (which == LearnableScales::activations) return names;
  for (const auto& site : quant::weight_sites(student)) {
    const quant::QuantizerSpec& spec = site.op->spec();
    if (!site.op->range_every_step() && spec.num_bits < kFineBits &&
        spec.format != quant::NumberFormat::ranks)
      names.insert(site.op->scale_name());
  }
  return names;
}

ScaleSteps::ScaleSteps(const models::ParameterStore& parameters, const std::set<std::string>& names)
    : logs_(logs_of(parameters, names)), adam_(logs_, kBeta1, kBeta2), tether_(tensors_of(logs_)) {
  for (const auto& [name, log] : logs_) scales_.push_back(parameters.at(name).requires_grad_(true));
}

ScaleSteps::~ScaleSteps() {
  for (const auto& scale : scales_) scale.requires_grad_(false);
}

void ScaleSteps::step(const std::vector<at::Tensor>& gradients, double lr, double reach) {
  if (scales_.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> of_logs;
  for (std::size_t i = 0; i < scales_.size(); ++i)
    of_logs.push_back(at::mul(gradients[i], scales_[i]));
  adam_.step(of_logs, lr);
  if (std::isfinite(reach)) tether_.hold(reach);
  for (std::size_t i = 0; i < scales_.size(); ++i) scales_[i].copy_(at::exp(logs_[i].second));
}

NamedTensors ScaleSteps::state() const {
  NamedTensors state = adam_.state();
  for (const auto& [name, log] : logs_) state.emplace_back(name + ".log", log);
  return state;
}

}  // namespace zsq::train
