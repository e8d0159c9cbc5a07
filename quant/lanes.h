// SPDX-License-Identifier: Apache-2.0
// Sixteen floats that are computed side by side in functions marked ZSQ_VECTORIZED, in as many
// registers as the instruction set takes.
#pragma once
#include <cstring>

#include "cuda_kernels/cpu_loops.h"

namespace zsq::quant {

constexpr std::int64_t kLanes = 16;
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;

ZSQ_INLINED void load(Lanes& lanes, const float* from) { std::memcpy(&lanes, from, sizeof lanes); }

// Each lane to its own of kLanes sums.
ZSQ_INLINED void add_lanes(double* sums, const Lanes& lanes) {
  float values[kLanes];
  std::memcpy(values, &lanes, sizeof values);
  for (std::int64_t l = 0; l < kLanes; ++l) sums[l] += static_cast<double>(values[l]);
}

}  // namespace zsq::quant
