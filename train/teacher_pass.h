// SPDX-License-Identifier: Apache-2.0
// The teacher as the generator's loss sees it: logits, and the batch moments at the inputs of its
// BatchNorm layers, which come out of the same pass (cuda_kernels/bn_clip_moments.h). The backward
// pass through the first convolution is that of cuda_kernels/image_conv.h.
#pragma once
#include <memory>

#include "losses/losses.h"
#include "models/execute.h"
#include "train/recomputed_blocks.h"

namespace zsq::train {

class TeacherPass {
 public:
  // Keeps a reference to the parameters, which get no gradient. Those of BatchNorm layers are
  // folded here, once: the values that they have now count.
  //
  // `memory`: bytes of values that a pass in f32 without taps may keep for the backward pass; to
  // stay within it, or near it, the first blocks are computed again (train/recomputed_blocks.h). 0:
  // all values are kept.
  TeacherPass(const models::Graph& teacher, const models::ParameterStore& parameters,
              double memory = 0);
  TeacherPass(TeacherPass&&) noexcept;
  ~TeacherPass();

  struct Result {
    at::Tensor logits;
    std::vector<losses::Moments> moments;  // in the order of models::batch_norm_inputs
  };
  // Autograd flows to the images. Not for two threads at once.
  Result operator()(const at::Tensor& images, models::Taps* taps = nullptr,
                    Precision precision = Precision::fp32) const;

  // What runs, for the nodes of taps; nodes that were fused carry the name of the last of them.
  const models::Graph& graph() const { return graph_; }

  // The blocks that can be computed again, and one for what follows them.
  std::vector<BlockBytes> bytes_of_blocks() const;

 private:
  struct Pass;  // what the graph's nodes read and write while it runs
  struct Block;

  Result run_in_blocks(const at::Tensor& images, std::size_t recomputed) const;
  void find_blocks(const models::Graph& teacher);

  const models::ParameterStore& parameters_;
  std::shared_ptr<Pass> run_;
  models::Graph graph_;
  std::vector<Block> blocks_;
  double memory_;
};

}  // namespace zsq::train
