// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of fake_quant.h over raw memory: n elements, scale and
// zero_point [channels], element i of channel (i / inner) % channels. T is float or Bf16.
#pragma once
#include <cstdint>
#include <vector>

#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

struct GridView {
  const float* scale;
  const float* zero_point;
  std::int64_t channels, inner;
  CodeRange range;

  ZSQ_HOST_DEVICE UniformGrid at(std::int64_t channel) const {
    return {scale[channel], zero_point[channel], range};
  }
};

template <class T>
void fake_quant_cpu(const T* x, T* y, std::int64_t n, const GridView& grid);
template <class T>
void fake_quant_cuda(const T* x, T* y, std::int64_t n, const GridView& grid, cudaStream_t stream);

// dx = dy where the code of x was not clamped, else 0.
template <class T>
void fake_quant_backward_cpu(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid);
template <class T>
void fake_quant_backward_cuda(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid,
                              cudaStream_t stream);

// The same for the weights of several layers, n >= 1 elements each. dy null: y is the value, else
// the gradient. On the CPU a grid may be found on the way, while a row is in the cache: then
// `scale` and `zero_point` are the grid's memory, to be filled.
struct LayerMap {
  const float *x, *dy;
  float* y;
  std::int64_t n;
  GridView grid;
  float *scale = nullptr, *zero_point = nullptr;
  bool symmetric = false;  // of a grid that is found
};
void fake_quant_layers_cpu(const std::vector<LayerMap>& layers);
void fake_quant_layers_cuda(const std::vector<LayerMap>& layers, cudaStream_t stream);

// counts[index] += the number of codes that differ; both grids have the same channels.
struct CodesView {
  const float *before, *after;
  std::int64_t n;
  GridView grid_before, grid_after;
  std::int64_t index;
};
void changed_codes_cpu(const std::vector<CodesView>& layers, std::int64_t* counts);
void changed_codes_cuda(const std::vector<CodesView>& layers, std::int64_t* counts,
                        cudaStream_t stream);

// NaN has no code: the CPU implementation returns whether there was one, the CUDA implementation
// sets *found_nan (device memory, zeroed by the caller) to 1.
bool quantize_cpu(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid);
void quantize_cuda(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid,
                   std::int32_t* found_nan, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
