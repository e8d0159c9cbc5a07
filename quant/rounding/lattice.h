// SPDX-License-Identifier: Apache-2.0
// Codes nearest to real numbers in the metric of a matrix:
//   minimise f(c) = (s c - t)^T A (s c - t) over integers lowest <= c_k <= highest.
// With A = L L^T and v = s c - t, f = sum_j L_jj^2 (v_j + sum_{i>j} L_ij / L_jj v_i)^2, so that
// from the last code to the first each has a best value given those before it. That walk (Babai's
// nearest plane) is the rounding with error feedback of GPTQ (Frantar et al. 2210.17323), without
// an inverse. Two searches improve on it: for few codes the tree of all walks, nearest value first,
// branches no better than the best leaf cut off (Schnorr and Euchner), until a budget is spent; and
// always single codes, each to its best value given all others, until none changes.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::quant {

// One grid for each row.
struct CodeGrids {
  at::Tensor scale;            // f64 [R], > 0
  at::Tensor lowest, highest;  // f64 [R, K]: of each code
  at::Tensor levels = {};      // f64 [R, L], ascending: the codes that there are; undefined: all
};

struct NearestCodes {
  at::Tensor codes;  // f64 [R, K]
  at::Tensor best;   // f64 [R, K], in steps: each code's best real value given the others' codes
  at::Tensor error;  // f64 [R]: f
};

class CodeLattice {
 public:
  static constexpr std::int64_t kTreeCodes = 32;    // rows of at most so many: the tree
  static constexpr std::int64_t kTreeNodes = 2000;  // budget of a row

  // A f64 [K, K], symmetric and positive definite, on the CPU.
  explicit CodeLattice(const at::Tensor& matrix);
  // t f64 [R, K].
  NearestCodes nearest(const at::Tensor& target, const CodeGrids& grids) const;
  // y A^-1 for rows y [R, K].
  at::Tensor solve(const at::Tensor& rows) const;

 private:
  at::Tensor nearest_planes(const at::Tensor& target, const CodeGrids& grids) const;
  void improve(const at::Tensor& target, const CodeGrids& grids, NearestCodes& found) const;

  std::int64_t n_;
  at::Tensor order_, back_;                       // largest A_kk last, so first in the walk
  at::Tensor matrix_, cholesky_, unit_, weight_;  // in that order
};

}  // namespace zsq::quant
