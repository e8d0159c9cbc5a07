// SPDX-License-Identifier: Apache-2.0
// One block of a student learns to give what the float network gives there.
#pragma once
#include <functional>
#include <set>

#include "models/blocks.h"
#include "models/precision.h"
#include "parallel/ranks.h"
#include "quant/rounding/soft_rounding.h"
#include "quant/student.h"
#include "train/reconstruct_options.h"
#include "train/reconstruction/drop_quantizers.h"
#include "train/scale_steps.h"

namespace zsq::train {

// Values on both sides of a block, for the same images.
struct BlockValues {
  at::Tensor student_input, float_input, float_output;
};

// The loss of a step, over a batch: with e the squared error of the block's output divided by that
// of nearest rounding, and u the mean over the block's weights of 1 - |2h - 1|^b
// (quant/rounding/soft_rounding.h),
//   e + regularizer_weight * u
// without u during the warm-up; b then falls linearly. Inputs and activations are mixtures of float
// and quantized values. Rounding and, from scale_start on, scales and, with bias_lr, BatchNorm beta
// and biases learn by Adam; log(scale) and biases end at most scale_lr and bias_lr from their
// start.
class BlockReconstruction {
 public:
  // `part`: the block cut out of the student's graph. `teacher`: the float weights. `settled`:
  // parameters that stay as they are. `batch`: images in a step, which the ranks share; each has
  // all values.
  BlockReconstruction(quant::Student& student, const models::Graph& part,
                      const models::ParameterStore& teacher, const std::set<std::string>& settled,
                      const ReconstructOptions& options, std::int64_t batch, std::uint64_t seed,
                      Precision precision, parallel::Communicator& ranks = parallel::alone());
  ~BlockReconstruction();
  BlockReconstruction(const BlockReconstruction&) = delete;
  BlockReconstruction& operator=(const BlockReconstruction&) = delete;

  // Whether anything of it does.
  bool learns() const {
    return !roundings_.empty() || !scales_->scales().empty() || !biases_->parameters().empty();
  }

  // One step, `share` of the run done and `advance` more with it, on images drawn from `values`.
  // `error_scale`: mean squared error that counts as 1. Gives the loss.
  double step(const BlockValues& values, double share, double advance, double error_scale);

  // Puts what was decided into the student: nearest rounding of its latent weights gives the codes.
  void decide();

 private:
  at::Tensor loss(const BlockValues& values, double share, double error_scale);
  void step_scales(const std::vector<at::Tensor>& of_scales,
                   const std::vector<at::Tensor>& of_biases, double share, double advance);

  quant::Student& student_;
  const ReconstructOptions& options_;
  parallel::Communicator& ranks_;
  parallel::Rows rows_;  // of a batch
  Precision precision_;
  std::shared_ptr<Chances> chances_;
  models::Graph graph_;  // with soft rounding and dropping quantizers
  std::vector<std::pair<std::string, std::shared_ptr<quant::SoftRounding>>> roundings_;
  std::optional<Adam> adam_, biases_;
  std::optional<Tether> biases_near_;
  std::optional<ScaleSteps> scales_;
  at::Generator draws_;
};

// BatchNorm beta and biases of a graph, each once.
NamedTensors biases_of(const models::Graph& graph, const models::ParameterStore& parameters);

// Squared error summed over the values, divided by their number.
at::Tensor mean_squared_error(const at::Tensor& value, const at::Tensor& target);

}  // namespace zsq::train
