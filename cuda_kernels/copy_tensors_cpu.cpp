// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cuda_kernels/copy_tensors_implementations.h"

namespace zsq::cuda_kernels {

void copy_bytes_cpu(const std::vector<BytesCopy>& copies, const bool* flag) {
  if (flag && !*flag) return;
  for (const BytesCopy& copy : copies)
    std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
}

}  // namespace zsq::cuda_kernels
