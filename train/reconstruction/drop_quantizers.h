// SPDX-License-Identifier: Apache-2.0
// Quantizers that let a share of the values pass as they are, drawn again at each call, so that
// what is learnt does not lean on one quantization error (QDrop, Wei et al. 2203.05740, eq. 6).
#pragma once
#include <memory>
#include <random>

#include "quant/student.h"

namespace zsq::train {

// Yes or no for each value of a tensor. A call takes a window, at a drawn place, of one long row
// that was drawn once: drawing costs more than a convolution otherwise.
class Chances {
 public:
  // `longest`: values of the largest tensor, for the whole batch. `first`: image of the batch that
  // tensors begin with, where ranks share it.
  Chances(double share, std::int64_t longest, std::uint64_t seed, at::Device device,
          std::int64_t first = 0);
  // bool, the shape and memory order of `like`, [N, ...]; true for about `share` of them.
  at::Tensor like(const at::Tensor& like);

 private:
  std::mt19937_64 places_;
  at::Tensor row_;
  std::int64_t first_;
};

// The graph with its activation quantizers replaced; gradients go to their scales.
models::Graph drop_quantizers(const models::Graph& graph, const std::shared_ptr<Chances>& chances);

}  // namespace zsq::train
