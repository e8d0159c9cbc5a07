// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cuda_kernels/copy_tensors.h"

namespace zsq::train {
namespace {

constexpr double kUnitBeta1 = 0.9, kUnitBeta2 = 0.99;

std::vector<at::Tensor> zeros_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const auto& tensor : tensors) zeros.push_back(at::zeros_like(tensor.detach()));
  return zeros;
}

NamedTensors zeros_of(const NamedTensors& named) {
  NamedTensors zeros;
  for (const auto& [name, tensor] : named)
    zeros.emplace_back(name, at::zeros_like(tensor.detach()));
  return zeros;
}

}  // namespace

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

void update_unless(const at::Tensor& skip, const std::vector<at::Tensor>& tensors,
                   const std::function<void()>& update) {
  if (!skip.is_cpu()) return restore_where(skip, tensors, update);
  if (!skip.item<bool>()) update();
}

void restore_where(const at::Tensor& skip, const std::vector<at::Tensor>& tensors,
                   const std::function<void()>& update) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> now, before;
  for (const auto& tensor : tensors) {
    if (tensor.device() != skip.device()) continue;
    now.push_back(tensor.detach());
    before.push_back(at::empty_like(now.back()));
  }
  cuda_kernels::copy_tensors_(before, now);
  update();
  cuda_kernels::copy_tensors_where_(skip, now, before);
}

Adam::Adam(const NamedTensors& parameters, double beta1, double beta2)
    : beta1_(beta1), beta2_(beta2) {
  for (const auto& [name, tensor] : parameters) {
    names_.push_back(name);
    parameters_.push_back(tensor);
    steps_.push_back(at::zeros({}, tensor.options().requires_grad(false)));
  }
  means_ = zeros_of(parameters_);
  squares_ = zeros_of(parameters_);
}

void Adam::step(const std::vector<at::Tensor>& gradients, double lr, const at::Tensor& skip) {
  constexpr double kEps = 1e-8;
  const at::NoGradGuard no_grad;
  std::optional<at::Tensor> skipped;  // as the kernel takes it: f32, 0 or 1
  if (skip.defined()) skipped = skip.to(at::kFloat);
  skipped ? at::_foreach_add_(steps_, skipped->neg().add(1)) : at::_foreach_add_(steps_, 1);
  at::_fused_adam_(parameters_, gradients, means_, squares_, {}, steps_, lr, beta1_, beta2_,
                   /*weight_decay=*/0, kEps, /*amsgrad=*/false, /*maximize=*/false,
                   /*grad_scale=*/{}, skipped);
}

NamedTensors Adam::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    state.emplace_back(names_[i] + ".mean", means_[i]);
    state.emplace_back(names_[i] + ".square", squares_[i]);
    state.emplace_back(names_[i] + ".steps", steps_[i]);
  }
  return state;
}

Tether::Tether(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
  for (const auto& tensor : tensors) starts_.push_back(tensor.detach().clone());
}

void Tether::hold(double reach) const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].copy_(starts_[i].add(tensors_[i].sub(starts_[i]).clamp_(-reach, reach)));
}

Nesterov::Nesterov(const NamedTensors& parameters, double momentum) : momentum_(momentum) {
  for (const auto& [name, tensor] : parameters) {
    names_.push_back(name);
    parameters_.push_back(tensor);
  }
  velocities_ = zeros_of(parameters_);
}

void Nesterov::step(const std::vector<at::Tensor>& gradients, double lr) {
  const at::NoGradGuard no_grad;
  at::_foreach_mul_(velocities_, momentum_);
  at::_foreach_add_(velocities_, gradients);
  at::_foreach_add_(parameters_, gradients, -lr);
  at::_foreach_add_(parameters_, velocities_, -lr * momentum_);
}

NamedTensors Nesterov::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < names_.size(); ++i) state.emplace_back(names_[i], velocities_[i]);
  return state;
}

void StepRule::stop() const {
  for (const auto& [name, tensor] : state()) tensor.zero_();
}

UnitAdam::UnitAdam(const NamedTensors& parameters, std::vector<at::Tensor> units)
    : parameters_(tensors_of(parameters)),
      units_(std::move(units)),
      moves_(zeros_of(parameters)),
      adam_(moves_, kUnitBeta1, kUnitBeta2) {}

void UnitAdam::step(const std::vector<at::Tensor>& gradients, double lr) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> of_moves;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    of_moves.push_back(gradients[i].mul(units_[i]));
  at::_foreach_zero_(adam_.parameters());
  adam_.step(of_moves, lr);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].addcmul_(moves_[i].second, units_[i]);
}

}  // namespace zsq::train
