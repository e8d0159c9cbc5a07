// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/fake_quant_twins.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void value_run(const float* __restrict x, float* __restrict y, std::int64_t n,
                              float scale, float zero_point, CodeRange range) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = fake_quant_value(x[i], scale, zero_point, range);
}

ZSQ_VECTORIZED void backward_run(const float* __restrict x, const float* __restrict dy,
                                 float* __restrict dx, std::int64_t n, float scale,
                                 float zero_point, CodeRange range) {
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = inside_range(x[i], scale, zero_point, range) ? dy[i] : 0.0f;
}

ZSQ_VECTORIZED bool code_run(const float* __restrict x, std::int32_t* __restrict codes,
                             std::int64_t n, float scale, float zero_point, CodeRange range) {
  std::int32_t found_nan = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float code = code_of(x[i], scale, zero_point, range);
    found_nan |= code != code;
    codes[i] = static_cast<std::int32_t>(code == code ? code : range.min);
  }
  return found_nan != 0;
}

}  // namespace

void fake_quant_cpu(const float* x, float* y, std::int64_t n, const GridView& grid) {
  for_each_run(
      n, grid.channels, grid.inner, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
        value_run(x + begin, y + begin, end - begin, grid.scale[c], grid.zero_point[c], grid.range);
      });
}

void fake_quant_backward_cpu(const float* x, const float* dy, float* dx, std::int64_t n,
                             const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 backward_run(x + begin, dy + begin, dx + begin, end - begin, grid.scale[c],
                              grid.zero_point[c], grid.range);
               });
}

bool quantize_cpu(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid) {
  std::atomic<bool> found_nan{false};
  for_each_run(n, grid.channels, grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 if (code_run(x + begin, codes + begin, end - begin, grid.scale[c],
                              grid.zero_point[c], grid.range))
                   found_nan = true;
               });
  return found_nan;
}

}  // namespace zsq::cuda_kernels
