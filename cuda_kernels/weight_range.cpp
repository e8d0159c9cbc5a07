// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/weight_range.h"

#include <ATen/ops/empty.h>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/weight_range_implementations.h"

namespace zsq::cuda_kernels {

std::pair<at::Tensor, at::Tensor> channel_min_max(const at::Tensor& x_any) {
  constexpr const char* op = "channel_min_max";
  check_float(op, "x", x_any);
  if (x_any.dim() == 0 || (x_any.size(0) > 0 && x_any.numel() == 0))
    fail(op, "x", describe(x_any), "[C, ...] with at least one element per row");
  const at::Tensor x = dense(x_any.detach());
  const std::int64_t rows = x.size(0);
  at::Tensor lo = at::empty({rows}, x.options());
  at::Tensor hi = at::empty({rows}, x.options());
  if (rows == 0) return {lo, hi};
  const std::int64_t columns = x.numel() / rows;
  const float* in = x.const_data_ptr<float>();
  float* lo_out = lo.mutable_data_ptr<float>();
  float* hi_out = hi.mutable_data_ptr<float>();
  if (x.is_cuda()) {
    const CudaScope cuda(op, x.device());
    if constexpr (kHasCuda) row_min_max_cuda(in, rows, columns, lo_out, hi_out, cuda.stream());
  } else {
    row_min_max_cpu(in, rows, columns, lo_out, hi_out);
  }
  return {lo, hi};
}

Grid grid_from_range(const at::Tensor& lo_any, const at::Tensor& hi_any, std::int64_t qmin,
                     std::int64_t qmax, bool symmetric) {
  constexpr const char* op = "grid_from_range";
  check_float(op, "lo", lo_any);
  check_like(op, "hi", hi_any, lo_any, lo_any.sizes());
  const CodeRange range = check_codes(op, qmin, qmax);
  check_symmetric(op, symmetric, qmin, qmax);
  const at::Tensor lo = lo_any.detach().contiguous();
  const at::Tensor hi = hi_any.detach().contiguous();
  Grid grid{at::empty(lo.sizes(), lo.options()), at::empty(lo.sizes(), lo.options())};
  if (lo.numel() == 0) return grid;
  const float* lo_data = lo.const_data_ptr<float>();
  const float* hi_data = hi.const_data_ptr<float>();
  float* scale = grid.scale.mutable_data_ptr<float>();
  float* zero_point = grid.zero_point.mutable_data_ptr<float>();
  if (lo.is_cuda()) {
    const CudaScope cuda(op, lo.device());
    if constexpr (kHasCuda)
      grid_from_range_cuda(lo_data, hi_data, lo.numel(), range, symmetric, scale, zero_point,
                           cuda.stream());
  } else {
    grid_from_range_cpu(lo_data, hi_data, lo.numel(), range, symmetric, scale, zero_point);
  }
  return grid;
}

}  // namespace zsq::cuda_kernels
