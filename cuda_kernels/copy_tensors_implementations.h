// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of copy_tensors.h over raw memory.
#pragma once
#include <cstdint>
#include <vector>

#include "cuda_kernels/cuda_stream.h"

namespace zsq::cuda_kernels {

// At least one byte.
struct BytesCopy {
  const void* from;
  void* to;
  std::int64_t bytes;
};

// flag: null, or nothing is done where *flag is false.
void copy_bytes_cpu(const std::vector<BytesCopy>& copies, const bool* flag);
void copy_bytes_cuda(const std::vector<BytesCopy>& copies, const bool* flag, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
