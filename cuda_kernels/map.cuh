// SPDX-License-Identifier: Apache-2.0
// Kernels that map elements: every output depends on the same place of each input and on numbers of
// its channel. Row y of the grid maps element y * n + i, of the y-th image where images have
// numbers of their own, which the functor finds.
//
// A map is a functor with
//   Channel channel(c)                  the numbers of a channel, loaded from memory
//   void operator()(channel, in, out)   one element, from one value of each input
// Bandwidth is what limits it, so a thread moves 16 bytes at once where all tensors are aligned,
// and the channel's numbers and the division that finds them are paid once per vector at most.
#pragma once
#include <numeric>

#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_common.cuh"

namespace zsq::cuda_kernels {

// How a thread meets the channels of what it maps.
enum class Walk {
  lanes,    // vectors of channels_last; the grid's stride is a multiple of the number of channels,
            // so that a thread keeps the channels that it begins with
  runs,     // vectors of one channel each
  elements  // one element at a time, whatever the layout
};

// The channel of i, i + stride, ...: in channels_last it advances by a constant.
class ChannelWalk {
 public:
  __device__ ChannelWalk(const ChannelOf& of, std::int64_t i, std::int64_t stride)
      : of_(of), stride_(stride), i_(i), channel_(of(i)), advance_(stride % of.channels) {}
  __device__ std::int64_t channel() const { return channel_; }
  __device__ void next() {
    i_ += stride_;
    channel_ += advance_;
    if (channel_ >= of_.channels) channel_ -= of_.channels;
    if (of_.inner > 1) channel_ = of_(i_);
  }

 private:
  ChannelOf of_;
  std::int64_t stride_, i_, channel_, advance_;
};

template <int kLength, bool kAtOnce = false, int kChannels, class T, int kIn, int kOut,
          class Channel, class F>
__device__ __forceinline__ void map_at(const Streams<T, kIn, kOut>& streams, std::int64_t i,
                                       const Channel (&numbers)[kChannels], const F& f) {
  float in[kLength][kIn], out[kLength][kOut];
  streams.read(i, in);
#pragma unroll
  for (int j = 0; j < kLength; ++j) f(numbers[j % kChannels], in[j], out[j]);
  streams.template write<kAtOnce>(i, out);
}

template <Walk kWalk, class T, int kIn, int kOut, class F>
__global__ void map_kernel(Streams<T, kIn, kOut> streams, std::int64_t n, ChannelOf channel, F f) {
  const std::int64_t first = first_index(), stride = index_stride(), begin = blockIdx.y * n;
  using Channel = typename F::Channel;
  if constexpr (kWalk == Walk::elements) {
    ChannelWalk walk(channel, first, stride);
    for (std::int64_t i = first; i < n; i += stride, walk.next()) {
      const Channel numbers[1] = {f.channel(walk.channel())};
      map_at<1>(streams, begin + i, numbers, f);
    }
  } else {
    constexpr int kLength = kVectorLength<T>, kChannels = kWalk == Walk::lanes ? kLength : 1;
    Channel numbers[kChannels];
    if constexpr (kWalk == Walk::lanes) {
      const std::int64_t c = channel(first * kLength);
#pragma unroll
      for (int j = 0; j < kLength; ++j) numbers[j] = f.channel(c + j);
    }
    for (std::int64_t v = first; v < n / kLength; v += stride) {
      if constexpr (kWalk == Walk::runs) numbers[0] = f.channel(channel(v * kLength));
      map_at<kLength>(streams, begin + v * kLength, numbers, f);
    }
    // Vectors leave a rest only if all elements are of one channel.
    for (std::int64_t i = n / kLength * kLength + first; i < n; i += stride) {
      const Channel only[1] = {f.channel(0)};
      map_at<1>(streams, begin + i, only, f);
    }
  }
}

// In Walk::lanes a thread takes up to four vectors, so that its channels' numbers are loaded less
// often than the data, but never so many that fewer blocks than this are left.
constexpr std::int64_t kBusyBlocks = 512;

// `layout` is that of each of `images` that lie one after the other.
template <class T, int kIn, int kOut, class F>
void launch_map(const char* op, const Streams<T, kIn, kOut>& streams, ChannelLayout layout, F f,
                cudaStream_t stream, std::int64_t images = 1) {
  constexpr int kLength = kVectorLength<T>;
  const auto [outer, channels, inner] = layout;
  const std::int64_t n = outer * channels * inner, vectors = n / kLength;
  const ChannelOf channel(n, channels, inner);
  const auto run = [&](auto kernel, std::int64_t blocks) {
    launch(op, kernel, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(images)), stream,
           streams, n, channel, f);
  };
  const bool wide = streams.aligned_to(16) && (images == 1 || n % kLength == 0);
  // Blocks after which the channels repeat.
  const std::int64_t period = channels / std::gcd(channels, std::int64_t{kThreads} * kLength);
  if (wide && (channels == 1 || inner % kLength == 0)) {
    run(map_kernel<Walk::runs, T, kIn, kOut, F>, blocks_for(vectors));
  } else if (wide && inner == 1 && channels % kLength == 0 && period <= kMaxBlocks) {
    const std::int64_t all = (vectors + kThreads - 1) / kThreads;
    const std::int64_t each = all < 2 * kBusyBlocks ? 1 : all < 4 * kBusyBlocks ? 2 : 4;
    const std::int64_t blocks = (all + each - 1) / each;
    run(map_kernel<Walk::lanes, T, kIn, kOut, F>, (blocks + period - 1) / period * period);
  } else {
    run(map_kernel<Walk::elements, T, kIn, kOut, F>, blocks_for(n));
  }
}

}  // namespace zsq::cuda_kernels
