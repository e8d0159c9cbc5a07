// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of inundation.h over raw memory: n >= 1 elements in one order
// for all tensors.
#pragma once
#include <vector>

#include "cuda_kernels/fake_quant_implementations.h"
#include "cuda_kernels/inundation_math.h"

namespace zsq::cuda_kernels {

void crossing_ratios_cpu(const float* weight, const float* step, float* ratios, std::int64_t n,
                         const GridView& grid);
void crossing_ratios_cuda(const float* weight, const float* step, float* ratios, std::int64_t n,
                          const GridView& grid, cudaStream_t stream);

// A layer and its entry in what is told of all layers; m in 1..n weights have to cross.
struct InundationView {
  float *weight, *velocity;
  const float* gradient;
  std::int64_t n, m;
  GridView grid;
  std::int64_t index;
};

// One entry per layer. The caller has set k to 1, the others to 0.
struct InundationOutcome {
  float* k;
  std::int64_t* crossings;
  bool* skipped;
};

// last_k: one entry per layer, or null.
void inundate_cpu(const std::vector<InundationView>& layers, InundationStep args,
                  const float* last_k, InundationOutcome outcome);

// A layer's state in device memory. The caller provides memory for it, zeroed.
struct InundationState {
  static constexpr int kBins = 2048;  // 11 bits, enough for each of three digits of a float's 31
  std::uint32_t histogram[3][kBins];
  std::uint32_t prefix;     // the digits of the m-th smallest ratio that are known so far
  std::uint32_t remaining;  // its rank (from 1) among the ratios that begin with them
};
// `ratios` is scratch for as many floats as the layers have weights, `states` for as many states as
// there are entries.
void inundate_cuda(const std::vector<InundationView>& layers, InundationStep args, float* ratios,
                   InundationState* states, InundationOutcome outcome, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
