// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <mutex>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/fake_quant_implementations.h"
#include "cuda_kernels/weight_range_implementations.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void value_run(const T* __restrict x, T* __restrict y, std::int64_t n,
                              UniformGrid grid) {
  for (std::int64_t i = 0; i < n; ++i) store(y[i], fake_quant_value(load(x[i]), grid));
}

template <class T>
ZSQ_VECTORIZED void backward_run(const T* __restrict x, const T* __restrict dy, T* __restrict dx,
                                 std::int64_t n, UniformGrid grid) {
  for (std::int64_t i = 0; i < n; ++i) store(dx[i], grid.contains(load(x[i])) ? load(dy[i]) : 0.0f);
}

ZSQ_VECTORIZED bool code_run(const float* __restrict x, std::int32_t* __restrict codes,
                             std::int64_t n, UniformGrid grid) {
  std::int32_t found_nan = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float code = grid.encode(x[i]);
    found_nan |= code != code;
    codes[i] = static_cast<std::int32_t>(code == code ? code : grid.range.min);
  }
  return found_nan != 0;
}

ZSQ_VECTORIZED std::int64_t changed_run(const float* __restrict before,
                                        const float* __restrict after, std::int64_t n,
                                        UniformGrid grid_before, UniformGrid grid_after) {
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < n; ++i)
    changed += grid_before.encode(before[i]) != grid_after.encode(after[i]);
  return changed;
}

// The rows that begin in [begin, end): range, grid and values.
void value_rows(const LayerMap& l, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = l.grid.inner;
  for_each_begun_row(begin, end, n, [&](std::int64_t row) {
    const float* x = l.x + row * n;
    const ScaleZero grid = row_grid_cpu(x, n, l.grid.range, l.symmetric);
    l.scale[row] = grid.scale;
    l.zero_point[row] = grid.zero_point;
    value_run(x, l.y + row * n, n, {grid.scale, grid.zero_point, l.grid.range});
  });
}

}  // namespace

template <class T>
void fake_quant_cpu(const T* x, T* y, std::int64_t n, const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 value_run(x + begin, y + begin, end - begin, grid.at(c));
               });
}

template <class T>
void fake_quant_backward_cpu(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid) {
  for_each_run(n, grid.channels, grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 backward_run(x + begin, dy + begin, dx + begin, end - begin, grid.at(c));
               });
}

void fake_quant_layers_cpu(const std::vector<LayerMap>& layers) {
  for_each_share(std::span(layers), [](const LayerMap& l, std::int64_t first, std::int64_t last) {
    const GridView& grid = l.grid;
    if (l.scale) return value_rows(l, first, last);
    split_into_runs(first, last, grid.channels, grid.inner,
                    [&](std::int64_t c, std::int64_t i, std::int64_t end) {
                      if (l.dy)
                        backward_run(l.x + i, l.dy + i, l.y + i, end - i, grid.at(c));
                      else
                        value_run(l.x + i, l.y + i, end - i, grid.at(c));
                    });
  });
}

void changed_codes_cpu(const std::vector<CodesView>& layers, std::int64_t* counts) {
  std::mutex mutex;
  for_each_share(std::span(layers), [&](const CodesView& l, std::int64_t first, std::int64_t last) {
    const GridView &a = l.grid_before, &b = l.grid_after;
    std::int64_t changed = 0;
    split_into_runs(first, last, a.channels, a.inner,
                    [&](std::int64_t c, std::int64_t i, std::int64_t end) {
                      changed += changed_run(l.before + i, l.after + i, end - i, a.at(c), b.at(c));
                    });
    const std::lock_guard lock(mutex);
    counts[l.index] += changed;
  });
}

bool quantize_cpu(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid) {
  std::atomic<bool> found_nan{false};
  for_each_run(n, grid.channels, grid.inner,
               [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
                 if (code_run(x + begin, codes + begin, end - begin, grid.at(c))) found_nan = true;
               });
  return found_nan;
}

template void fake_quant_cpu(const float*, float*, std::int64_t, const GridView&);
template void fake_quant_backward_cpu(const float*, const float*, float*, std::int64_t,
                                      const GridView&);
template void fake_quant_cpu(const Bf16*, Bf16*, std::int64_t, const GridView&);
template void fake_quant_backward_cpu(const Bf16*, const Bf16*, Bf16*, std::int64_t,
                                      const GridView&);

}  // namespace zsq::cuda_kernels
