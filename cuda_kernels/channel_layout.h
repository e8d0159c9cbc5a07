// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace zsq::cuda_kernels {

// Dense memory seen as [outer, channels, inner]: element i is of channel (i / inner) % channels.
// Row-major [N, C, H, W] has inner = H W, channels_last has inner = 1.
struct ChannelLayout {
  std::int64_t outer = 1, channels = 1, inner = 1;
};

}  // namespace zsq::cuda_kernels
