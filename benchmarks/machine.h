// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "benchmarks/clock.h"

namespace zsq::benchmarks {

// Copies, into new memory or into old, whichever is faster: of a tensor of 1/16 of the last-level
// cache (256 kB to 2 MB) and of one of twice the last-level cache (64 to 512 MB); on CUDA 4 MB and
// 256 MB, and no cache size. Matrix product: square factors of side 1024 on up to 4 threads, 2048
// on more, 8192 on CUDA.
MachinePeaks measure_machine(c10::Device device, std::int64_t rounds, Observer& observer);

}  // namespace zsq::benchmarks
