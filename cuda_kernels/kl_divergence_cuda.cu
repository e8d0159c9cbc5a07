// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cuda_common.cuh"
#include "cuda_kernels/kl_divergence_implementations.h"
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {
namespace {

// log softmax(logits / tau) = (logit - peak) / tau - log_sum, found by the whole block.
struct LogSoftmax {
  double peak, log_sum, inverse_tau;

  __device__ LogSoftmax(const float* logits, std::int64_t classes, double inverse_tau)
      : inverse_tau(inverse_tau) {
    double own = -kInfinity;
    for (std::int64_t c = threadIdx.x; c < classes; c += kThreads) own = Max()(logits[c], own);
    peak = block_reduce(own, Max());
    double sum = 0;
    for (std::int64_t c = threadIdx.x; c < classes; c += kThreads)
      sum += exp((logits[c] - peak) * inverse_tau);
    log_sum = log(block_reduce(sum, Sum()));
  }
  __device__ double operator()(float logit) const { return (logit - peak) * inverse_tau - log_sum; }
};

// One block per row.
__global__ void kl_kernel(const float* student, const float* teacher, std::int64_t rows,
                          std::int64_t classes, double inverse_tau, double* row_sums,
                          float* difference) {
  for (std::int64_t n = blockIdx.x; n < rows; n += gridDim.x) {
    const float* s = student + n * classes;
    const float* t = teacher + n * classes;
    const LogSoftmax log_s(s, classes, inverse_tau), log_p(t, classes, inverse_tau);
    double sum = 0;
    for (std::int64_t c = threadIdx.x; c < classes; c += kThreads) {
      const double ls = log_s(s[c]), lp = log_p(t[c]), p = exp(lp);
      if (p != 0) sum += p * (lp - ls);  // 0 log 0 = 0
      if (difference) difference[n * classes + c] = static_cast<float>(exp(ls) - p);
    }
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) row_sums[n] = sum;
  }
}

}  // namespace

void kl_rows_cuda(const float* student, const float* teacher, std::int64_t rows,
                  std::int64_t classes, double tau, double* row_sums, float* difference,
                  cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows < kMaxBlocks ? rows : kMaxBlocks);
  if (blocks == 0) return;
  launch("kl_divergence", kl_kernel, blocks, stream, student, teacher, rows, classes, 1 / tau,
         row_sums, difference);
}

}  // namespace zsq::cuda_kernels
