// SPDX-License-Identifier: Apache-2.0
// Plain optimizers over a fixed list of tensors; gradients come in the same order. State is exposed
// by name, as handles: what is written into them is what the next step uses.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zsq::train {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<at::Tensor> tensors_of(const NamedTensors& named);

// An update in place of `tensors`, not done where `skip` (bool []) is set. A GPU is not asked:
// there the old values come back instead (restore_where); what lies elsewhere stays as it is.
void update_unless(const at::Tensor& skip, const std::vector<at::Tensor>& tensors,
                   const std::function<void()>& update);
void restore_where(const at::Tensor& skip, const std::vector<at::Tensor>& tensors,
                   const std::function<void()>& update);

// Adam (1412.6980) with bias correction, eps 1e-8, no weight decay.
class Adam {
 public:
  Adam(const NamedTensors& parameters, double beta1, double beta2);
  // `skip` (bool [], may be undefined): nothing is changed where it is set, and no GPU waited for.
  void step(const std::vector<at::Tensor>& gradients, double lr, const at::Tensor& skip = {});
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  NamedTensors state() const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, means_, squares_, steps_;
  double beta1_, beta2_;
};

// Keeps tensors near what they were when this was made.
class Tether {
 public:
  explicit Tether(const std::vector<at::Tensor>& tensors);
  void hold(double reach) const;  // each value at most so far from its start

 private:
  std::vector<at::Tensor> tensors_, starts_;
};

// How tensors follow their gradients.
class StepRule {
 public:
  virtual ~StepRule() = default;
  virtual void step(const std::vector<at::Tensor>& gradients, double lr) = 0;
  virtual const std::vector<at::Tensor>& parameters() const = 0;
  virtual NamedTensors state() const = 0;
  void stop() const;  // forgets earlier gradients
};

// SGD with Nesterov momentum: v <- momentum * v + g,  w <- w - lr * (g + momentum * v).
class Nesterov final : public StepRule {
 public:
  Nesterov(const NamedTensors& parameters, double momentum);
  void step(const std::vector<at::Tensor>& gradients, double lr) override;
  const std::vector<at::Tensor>& parameters() const override { return parameters_; }
  NamedTensors state() const override;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, velocities_;
  double momentum_;
};

// Adam on w / unit, beta 0.9 and 0.99: w <- w - lr * unit * m / sqrt(v), which moves a value by at
// most about lr units in a step, and by less the less its gradients agree in sign.
class UnitAdam final : public StepRule {
 public:
  // One unit for each parameter, f32, of a shape that broadcasts to it.
  UnitAdam(const NamedTensors& parameters, std::vector<at::Tensor> units);
  void step(const std::vector<at::Tensor>& gradients, double lr) override;
  const std::vector<at::Tensor>& parameters() const override { return parameters_; }
  NamedTensors state() const override { return adam_.state(); }

 private:
  std::vector<at::Tensor> parameters_, units_;
  NamedTensors moves_;  // of the last step, in units
  Adam adam_;           // moves them
};

}  // namespace zsq::train
