// SPDX-License-Identifier: Apache-2.0
// Times every operator of cuda_kernels/, forward and backward, against the copy bandwidth.
#pragma once
#include "benchmarks/clock.h"

namespace zsq::benchmarks {

// On activations [N, 64, 32, 32] in fp32 and bf16, weights [C, 64, 3, 3] (both channels_last) and
// logits [N, 1000], each of `cached_bytes`, then of `large_bytes`. moved_bytes counts tensors of
// that size, not scales or sums per channel. "resnet20" beside the smaller size and "resnet18"
// beside the larger one are all weights of that network at once. "sgd_nesterov" are the plain steps
// that inundation is compared with.
std::vector<KernelTime> time_kernels(const MachinePeaks& machine, c10::Device device,
                                     std::int64_t rounds, Observer& observer);

}  // namespace zsq::benchmarks
