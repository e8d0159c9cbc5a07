// SPDX-License-Identifier: Apache-2.0
// Sums per channel on the device, while elements are mapped (map.cuh says what a map is; here it
// also adds to `sums`). A thread adds up to kFloatTerms terms in float, or more only in tensors too
// large for the grid; threads, parts and channels are combined in double, in an order that depends
// on the layout and on the tensors' alignment alone: the same bits on every run. Row y of a grid is
// of the y-th image where images have sums of their own.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/cuda_common.cuh"

namespace zsq::cuda_kernels {

static_assert(kSumThreads == kThreads);

template <bool kAtOnce, int kLength, int kSums, int kChannels, class T, int kIn, int kOut,
          class Channel, class F>
__device__ __forceinline__ void sum_at(const Streams<T, kIn, kOut>& streams, std::int64_t i,
                                       const Channel (&numbers)[kChannels], const F& f,
                                       float (&sums)[kLength][kSums]) {
  float in[kLength][kIn], out[kLength][kOut] = {};
  streams.read(i, in);
#pragma unroll
  for (int j = 0; j < kLength; ++j) f(numbers[j % kChannels], in[j], out[j], sums[j]);
  streams.template write<kAtOnce>(i, out);
}

// Each values[k] is rows x lanes numbers; its row 0 becomes the sum of the rows, as a fixed tree.
// Every thread of the block has to call it; a thread of row 0 may then read its own number.
template <int kValues>
__device__ void add_rows(double (&values)[kValues][kThreads], int lanes, int rows) {
  const int row = static_cast<int>(threadIdx.x) / lanes;
  for (int left = rows; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (row + half < left) {
#pragma unroll
      for (int k = 0; k < kValues; ++k)
        values[k][threadIdx.x] += values[k][threadIdx.x + half * lanes];
    }
    left = half;
  }
}

// Where the image of this block begins.
__device__ __forceinline__ std::int64_t own_image(const ChannelLayout& layout) {
  return blockIdx.y * (layout.outer * layout.channels * layout.inner);
}

// One channel per block.
template <int kLength, int kSums, class T, int kIn, int kOut, class F>
__global__ void row_sums_kernel(Streams<T, kIn, kOut> streams, ChannelLayout layout,
                                ChannelSumCut cut, double* partial, F f) {
  const std::int64_t c = blockIdx.x % cut.tiles, part = blockIdx.x / cut.tiles;
  const std::int64_t image = own_image(layout);
  partial += blockIdx.y * (cut.parts * kSums * layout.channels);
  const std::int64_t per_row = layout.inner / kLength, count = layout.outer * per_row;
  const std::int64_t begin = part * cut.per_part;
  const std::int64_t end = begin + cut.per_part < count ? begin + cut.per_part : count;
  const typename F::Channel numbers[1] = {f.channel(c)};
  float sums[kLength][kSums] = {};
  for (std::int64_t v = begin + threadIdx.x; v < end; v += kThreads) {
    std::int64_t o = 0;
    if (layout.outer > 1)
      o = count <= 0xffffffffLL
              ? static_cast<std::uint32_t>(v) / static_cast<std::uint32_t>(per_row)
              : v / per_row;
    const std::int64_t i =
        image + (o * layout.channels + c) * layout.inner + (v - o * per_row) * kLength;
    sum_at<(kOut > 1)>(streams, i, numbers, f, sums);
  }
  // Vectors leave a rest only if there is one channel, in one row.
  float rest[1][kSums] = {};
  if (part == 0 && threadIdx.x < layout.inner % kLength)
    sum_at<false>(streams, image + layout.inner - 1 - threadIdx.x, numbers, f, rest);
  for (int k = 0; k < kSums; ++k) {
    double own = rest[0][k];
    for (int j = 0; j < kLength; ++j) own += sums[j][k];
    const double sum = block_reduce(own, Sum());
    if (threadIdx.x == 0) partial[(part * kSums + k) * layout.channels + c] = sum;
  }
}

// channels_last: a thread keeps its channels, whose numbers it loads once.
template <int kLength, int kSums, class T, int kIn, int kOut, class F>
__global__ void pixel_sums_kernel(Streams<T, kIn, kOut> streams, ChannelLayout layout,
                                  ChannelSumCut cut, double* partial, F f) {
  __shared__ double values[kSums * kLength][kThreads];
  const auto lanes = static_cast<int>(cut.lanes), rows = static_cast<int>(cut.rows);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int row = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t tile = blockIdx.x % cut.tiles, part = blockIdx.x / cut.tiles;
  const std::int64_t image = own_image(layout);
  partial += blockIdx.y * (cut.parts * kSums * layout.channels);
  const std::int64_t c = (tile * lanes + lane) * kLength;
  const bool works = row < rows && c < layout.channels;
  float sums[kLength][kSums] = {};
  if (works) {
    typename F::Channel numbers[kLength];
#pragma unroll
    for (int j = 0; j < kLength; ++j) numbers[j] = f.channel(c + j);
    const std::int64_t begin = part * cut.per_part;
    const std::int64_t end =
        begin + cut.per_part < layout.outer ? begin + cut.per_part : layout.outer;
    for (std::int64_t pixel = begin + row; pixel < end; pixel += rows)
      sum_at<false>(streams, image + pixel * layout.channels + c, numbers, f, sums);
  }
#pragma unroll
  for (int j = 0; j < kLength; ++j)
    for (int k = 0; k < kSums; ++k) values[k * kLength + j][threadIdx.x] = sums[j][k];
  add_rows(values, lanes, rows);
  if (row > 0 || !works) return;
#pragma unroll
  for (int j = 0; j < kLength; ++j)
    for (int k = 0; k < kSums; ++k)
      partial[(part * kSums + k) * layout.channels + c + j] = values[k * kLength + j][threadIdx.x];
}

// sums[i] = the sum of partial[p][i] over the parts p; a block takes kPartLanes of the n sums.
constexpr int kPartLanes = 4;  // 32 bytes, which memory delivers at once
static __global__ void add_parts_kernel(const double* partial, std::int64_t parts, std::int64_t n,
                                        double* sums) {
  __shared__ double values[1][kThreads];
  constexpr int kRows = kThreads / kPartLanes;
  const int row = static_cast<int>(threadIdx.x) / kPartLanes;
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * kPartLanes + threadIdx.x % kPartLanes;
  double sum = 0;
  partial += blockIdx.y * (parts * n);
  if (i < n)
    for (std::int64_t p = row; p < parts; p += kRows) sum += partial[p * n + i];
  values[0][threadIdx.x] = sum;
  add_rows(values, kPartLanes, kRows);
  if (row == 0 && i < n) sums[blockIdx.y * n + i] = values[0][threadIdx.x];
}

// sums [images, kSums, C], `layout` that of each image; `partial` has room for
// images * channel_sums_scratch(layout) doubles.
template <int kSums, class T, int kIn, int kOut, class F>
void launch_channel_sums(const char* op, const Streams<T, kIn, kOut>& streams, ChannelLayout layout,
                         double* sums, double* partial, F f, cudaStream_t stream,
                         std::int64_t images = 1) {
  static_assert(kSums <= kSumMax);
  if (layout.channels == 1) layout = {1, 1, layout.outer * layout.inner};
  const std::int64_t elements = layout.outer * layout.channels * layout.inner;
  const bool aligned = streams.aligned_to(sizeof(Vector<T, kSumVector>)) &&
                       (images == 1 || elements % kSumVector == 0);
  const auto grid = [&](std::int64_t blocks) {
    return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(images));
  };
  const auto run = [&](auto by_rows, auto by_pixels, int length) {
    const ChannelSumCut cut = channel_sum_cut(layout, length);
    launch(op, cut.by_pixel ? by_pixels : by_rows, grid(cut.parts * cut.tiles), stream, streams,
           layout, cut, partial, f);
    return cut.parts;
  };
  const std::int64_t along = layout.inner == 1 ? layout.channels : layout.inner;
  const std::int64_t parts =
      aligned && (along % kSumVector == 0 || layout.channels == 1)
          ? run(row_sums_kernel<kSumVector, kSums, T, kIn, kOut, F>,
                pixel_sums_kernel<kSumVector, kSums, T, kIn, kOut, F>, kSumVector)
          : run(row_sums_kernel<1, kSums, T, kIn, kOut, F>,
                pixel_sums_kernel<1, kSums, T, kIn, kOut, F>, 1);
  const std::int64_t n = kSums * layout.channels;
  launch(op, add_parts_kernel, grid((n + kPartLanes - 1) / kPartLanes), stream, partial, parts, n,
         sums);
}

}  // namespace zsq::cuda_kernels
