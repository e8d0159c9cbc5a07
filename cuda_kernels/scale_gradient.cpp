// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/scale_gradient.h"

#include <ATen/ops/empty.h>

#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"

namespace zsq::cuda_kernels {

at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& dy, const ScaleGradientView& view,
                          at::IntArrayRef shape) {
  const std::int64_t channels = view.layout.channels;
  const at::Tensor sums = at::empty({channels}, x.options().dtype(at::kDouble));
  double* out = sums.mutable_data_ptr<double>();
  with_element_type(x, [&]<class T>(T) {
    const T *in = elements<T>(x), *dy_data = elements<T>(dy);
    if (x.is_cuda()) {
      const CudaScope cuda("scale_gradient", x.device());
      const at::Tensor partial = at::empty({channel_sums_scratch(channels)}, sums.options());
      if constexpr (kHasCuda)
        scale_gradient_cuda(in, dy_data, out, partial.mutable_data_ptr<double>(), view,
                            cuda.stream());
    } else {
      scale_gradient_cpu(in, dy_data, out, view);
    }
  });
  return (view.per_channel ? sums : sums.sum()).to(at::kFloat).reshape(shape);
}

}  // namespace zsq::cuda_kernels
