// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing (Chen et al., 1604.06174) of a teacher's pass: the first blocks, whose
// maps are the largest, keep only what they read and are computed again when their gradient
// arrives. The same operations on the same values, so that every bit stays; it costs a forward pass
// of these blocks.
#pragma once
#include <memory>
#include <vector>

#include "losses/losses.h"
#include "models/blocks.h"

namespace zsq::train {

// Of one image, in bytes of f32: all values that a block computes, and the one at its exit.
struct BlockBytes {
  double inside = 0, exit = 0;
};

// What a pass holds if its first `recomputed` blocks are computed again, one by one, and the others
// keep their values: the former's exits, and the larger of the values of the largest of them and of
// all others together.
double bytes_held(const std::vector<BlockBytes>& blocks, std::size_t recomputed);
// The fewest blocks with which a pass holds at most `bytes`; if there is no such number, the one
// with which it holds least. The last block is never among them.
std::size_t blocks_to_recompute(const std::vector<BlockBytes>& blocks, double bytes);

// A block of a graph whose nodes write the moments of their BatchNorm inputs to places first to
// last - 1 of `moments`.
struct RecomputedBlock {
  models::Graph part;  // models::cut_out
  const models::ParameterStore* parameters;
  std::shared_ptr<std::vector<losses::Moments>> moments;
  std::size_t first = 0, last = 0;
};

struct BlockOutputs {
  at::Tensor exit;
  std::vector<losses::Moments> moments;  // of these places
};
// In f32. Autograd flows from exit and moments to `entry`.
BlockOutputs run_recomputed(const std::shared_ptr<const RecomputedBlock>& block,
                            const at::Tensor& entry);

}  // namespace zsq::train
