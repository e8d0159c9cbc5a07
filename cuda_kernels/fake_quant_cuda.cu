// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cuda_common.cuh"
#include "cuda_kernels/fake_quant_twins.h"

namespace zsq::cuda_kernels {
namespace {

struct Value {
  GridView grid;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float) const {
    const std::int64_t c = channel(i);
    return fake_quant_value(x, grid.scale[c], grid.zero_point[c], grid.range);
  }
};

struct Backward {
  GridView grid;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float dy) const {
    const std::int64_t c = channel(i);
    return inside_range(x, grid.scale[c], grid.zero_point[c], grid.range) ? dy : 0.0f;
  }
};

__global__ void quantize_kernel(const float* x, std::int32_t* codes, std::int64_t n, GridView grid,
                                ChannelOf channel, std::int32_t* found_nan) {
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const std::int64_t c = channel(i);
    const float code = code_of(x[i], grid.scale[c], grid.zero_point[c], grid.range);
    if (code != code) *found_nan = 1;
    codes[i] = static_cast<std::int32_t>(code == code ? code : grid.range.min);
  }
}

}  // namespace

template <class T>
void fake_quant_cuda(const T* x, T* y, std::int64_t n, const GridView& grid, cudaStream_t stream) {
  launch_map("fake_quant", x, x, y, n, Value{grid, {n, grid.channels, grid.inner}}, stream);
}

template <class T>
void fake_quant_backward_cuda(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid,
                              cudaStream_t stream) {
  launch_map("fake_quant backward", x, dy, dx, n, Backward{grid, {n, grid.channels, grid.inner}},
             stream);
}

void quantize_cuda(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid,
                   std::int32_t* found_nan, cudaStream_t stream) {
  quantize_kernel<<<blocks_for(n), kThreads, 0, stream>>>(
      x, codes, n, grid, {n, grid.channels, grid.inner}, found_nan);
  check_launch("quantize");
}

template void fake_quant_cuda(const float*, float*, std::int64_t, const GridView&, cudaStream_t);
template void fake_quant_backward_cuda(const float*, const float*, float*, std::int64_t,
                                       const GridView&, cudaStream_t);
template void fake_quant_cuda(const Bf16*, Bf16*, std::int64_t, const GridView&, cudaStream_t);
template void fake_quant_backward_cuda(const Bf16*, const Bf16*, Bf16*, std::int64_t,
                                       const GridView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
