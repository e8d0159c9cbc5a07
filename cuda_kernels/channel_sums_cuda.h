// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace zsq::cuda_kernels {

// Each channel's sums, three at most, are computed in this many fixed parts, which are then added
// in order.
constexpr int kChannelSumParts = 64;
constexpr std::int64_t channel_sums_scratch(std::int64_t channels) {
  return channels * kChannelSumParts * 3;
}

}  // namespace zsq::cuda_kernels
