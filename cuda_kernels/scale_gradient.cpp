// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/scale_gradient.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/scale_gradient_implementations.h"

namespace zsq::cuda_kernels {

at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& dy, const GridTensors& grid,
                          CodeRange range, const at::Tensor& dx) {
  if (x.numel() == 0) return at::zeros(grid.scale.sizes(), grid.scale.options());
  // A tensor with one grid is cut into blocks, so that its sum is in parallel.
  const bool per_channel = grid.scale.numel() > 1;
  const ScaleGradientView view{per_channel ? grid.layout : ChannelLayout{x.numel(), 1, 1},
                               grid.scale.const_data_ptr<float>(),
                               grid.zero_point.const_data_ptr<float>(), range};
  const std::int64_t channels = view.layout.channels;
  const at::Tensor sums = at::empty({channels}, x.options().dtype(at::kDouble));
  double* out = sums.mutable_data_ptr<double>();
  with_element_type(x, [&]<class T>(T) {
    const T *in = elements<T>(x), *dy_data = elements<T>(dy);
    T* dx_data = dx.defined() ? mutable_elements<T>(dx) : nullptr;
    if (x.is_cuda()) {
      const CudaScope cuda("scale_gradient", x.device());
      const at::Tensor partial = at::empty({channel_sums_scratch(view.layout)}, sums.options());
      if constexpr (kHasCuda)
        scale_gradient_cuda(in, dy_data, dx_data, out, partial.mutable_data_ptr<double>(), view,
                            cuda.stream());
    } else {
      scale_gradient_cpu(in, dy_data, dx_data, out, view);
    }
  });
  return (per_channel ? sums : sums.sum()).to(at::kFloat).reshape(grid.scale.sizes());
}

}  // namespace zsq::cuda_kernels
