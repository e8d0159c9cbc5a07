// SPDX-License-Identifier: Apache-2.0
// Sums per channel on the device. The tensor is cut into parts that depend on its shape alone,
// and the parts are added in order: the same bits on every run.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/cuda_common.cuh"

namespace zsq::cuda_kernels {

constexpr int kTileChannels = 32, kTileRows = kThreads / kTileChannels;

// f(i, c, sums) is called once for each element i, of channel c, and adds to the kSums doubles.
// Row-major: block (c, part) takes elements of one channel.
template <int kSums, class F>
__global__ void row_sums_kernel(ChannelLayout layout, std::int64_t per_part, double* partial, F f) {
  const std::int64_t c = blockIdx.x, count = layout.outer * layout.inner;
  const std::int64_t begin = blockIdx.y * per_part;
  const std::int64_t end = begin + per_part < count ? begin + per_part : count;
  double sums[kSums] = {};
  for (std::int64_t e = begin + threadIdx.x; e < end; e += kThreads) {
    const std::int64_t o = count <= 0xffffffffLL ? static_cast<std::uint32_t>(e) /
                                                       static_cast<std::uint32_t>(layout.inner)
                                                 : e / layout.inner;
    f((o * layout.channels + c) * layout.inner + (e - o * layout.inner), c, sums);
  }
  double* out = partial + static_cast<std::int64_t>(blockIdx.y) * kSums * layout.channels;
  for (int k = 0; k < kSums; ++k) {
    const double sum = block_reduce(sums[k], Sum());
    if (threadIdx.x == 0) out[k * layout.channels + c] = sum;
  }
}

// channels_last: block (tile of channels, part), a thread stays with its channel.
template <int kSums, class F>
__global__ void pixel_sums_kernel(ChannelLayout layout, std::int64_t per_part, double* partial,
                                  F f) {
  __shared__ double shared[kSums][kTileRows][kTileChannels];
  const int lane = threadIdx.x % kTileChannels, row = threadIdx.x / kTileChannels;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kTileChannels + lane;
  const std::int64_t begin = blockIdx.y * per_part;
  const std::int64_t end = begin + per_part < layout.outer ? begin + per_part : layout.outer;
  double sums[kSums] = {};
  if (c < layout.channels)
    for (std::int64_t o = begin + row; o < end; o += kTileRows) f(o * layout.channels + c, c, sums);
  for (int k = 0; k < kSums; ++k) shared[k][row][lane] = sums[k];
  __syncthreads();
  if (row >= kSums || c >= layout.channels) return;
  double sum = 0;  // row k adds up the k-th sums
  for (int r = 0; r < kTileRows; ++r) sum += shared[row][r][lane];
  partial[(static_cast<std::int64_t>(blockIdx.y) * kSums + row) * layout.channels + c] = sum;
}

static __global__ void add_parts_kernel(const double* partial, int parts, std::int64_t n,
                                        double* sums) {
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    double sum = 0;
    for (int p = 0; p < parts; ++p) sum += partial[p * n + i];
    sums[i] = sum;
  }
}

// sums [kSums, C]; `partial` has room for channel_sums_scratch(C) doubles.
template <int kSums, class F>
void launch_channel_sums(const char* op, ChannelLayout layout, double* sums, double* partial, F f,
                         cudaStream_t stream) {
  constexpr std::int64_t kElementsPerPart = 2048;
  const std::int64_t count = layout.outer * layout.inner;
  std::int64_t parts = (count + kElementsPerPart - 1) / kElementsPerPart;
  if (parts > kChannelSumParts) parts = kChannelSumParts;
  const std::int64_t per_part = (count + parts - 1) / parts;
  const auto y = static_cast<unsigned>(parts);
  if (layout.inner > 1) {
    const dim3 blocks(static_cast<unsigned>(layout.channels), y);
    launch(op, row_sums_kernel<kSums, F>, blocks, stream, layout, per_part, partial, f);
  } else {
    const dim3 blocks(static_cast<unsigned>((layout.channels + kTileChannels - 1) / kTileChannels),
                      y);
    launch(op, pixel_sums_kernel<kSums, F>, blocks, stream, layout, per_part, partial, f);
  }
  const std::int64_t n = kSums * layout.channels;
  launch(op, add_parts_kernel, blocks_for(n), stream, partial, static_cast<int>(parts), n, sums);
}

}  // namespace zsq::cuda_kernels
