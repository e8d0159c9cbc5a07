// SPDX-License-Identifier: Apache-2.0
// Both twins of inundation.h over raw memory: n >= 1 elements in one order for all tensors.
#pragma once
#include "cuda_kernels/fake_quant_twins.h"
#include "cuda_kernels/inundation_math.h"

namespace zsq::cuda_kernels {

void crossing_ratios_cpu(const float* weight, const float* step, float* ratios, std::int64_t n,
                         const GridView& grid);
void crossing_ratios_cuda(const float* weight, const float* step, float* ratios, std::int64_t n,
                          const GridView& grid, cudaStream_t stream);

struct InundationOutcome {
  float k;
  std::int32_t skipped;
  std::int64_t crossings;
};

// m in 1..n: the number of weights that have to cross.
InundationOutcome inundate_cpu(float* weight, float* velocity, const float* gradient,
                               std::int64_t n, std::int64_t m, const GridView& grid,
                               InundationStep args);

// One layer's state in device memory; the launches never wait for the host, so several layers can
// be in flight and be read back together. The caller provides memory for it, zeroed.
struct InundationState {
  static constexpr int kBins = 2048;  // 11 bits, enough for each of three digits of a float's 31
  std::uint32_t histogram[3][kBins];
  std::uint32_t prefix;     // the digits of the m-th smallest ratio that are known so far
  std::uint32_t remaining;  // its rank (from 1) among the ratios that begin with them
  InundationOutcome outcome;
};
// `ratios` is scratch for n floats.
void inundate_cuda(float* weight, float* velocity, const float* gradient, float* ratios,
                   std::int64_t n, std::int64_t m, const GridView& grid, InundationStep args,
                   InundationState* state, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
