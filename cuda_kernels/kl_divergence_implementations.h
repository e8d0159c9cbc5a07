// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of kl_divergence.h over raw memory: student, teacher [rows,
// classes] row-major.
#pragma once
#include <cstdint>

#include "cuda_kernels/cuda_stream.h"

namespace zsq::cuda_kernels {

// row_sums[n] = sum over c of p_nc (log p_nc - log s_nc); where `difference` is not null it gets s
// - p.
void kl_rows_cpu(const float* student, const float* teacher, std::int64_t rows,
                 std::int64_t classes, double tau, double* row_sums, float* difference);
void kl_rows_cuda(const float* student, const float* teacher, std::int64_t rows,
                  std::int64_t classes, double tau, double* row_sums, float* difference,
                  cudaStream_t stream);

}  // namespace zsq::cuda_kernels
