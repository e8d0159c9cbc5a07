// SPDX-License-Identifier: Apache-2.0
// bn_act_implementations.h over tensors: checks, and the choice of the implementation.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "cuda_kernels/bn_act_implementations.h"
#include "cuda_kernels/channel_sums_cuda.h"
#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/folded_batch_norm.h"

namespace zsq::cuda_kernels {

// x [N, C, H, W], a residual of its shape if there is one, four [C] tensors, eps >= 0, lo < hi.
void check_batch_norm(const char* op, const at::Tensor& x,
                      const std::optional<at::Tensor>& residual, const at::Tensor& gamma,
                      const at::Tensor& beta, const at::Tensor& mean, const at::Tensor& variance,
                      double eps, float lo, float hi);

// What one pass reads and writes. Tensors are like x in order and type, channels [C] f32; those
// that the pass does not need stay undefined. With per_image, gain and offset are [N, C], and each
// image has sums of its own.
struct BnActPass {
  const char* op;
  at::Tensor x, residual{}, dy{}, y{}, dx{}, dresidual{};
  at::Tensor gain{}, offset{}, mean{}, a{}, b{};
  bool per_image = false;

  std::int64_t images() const { return per_image ? x.size(0) : 1; }
  // Of one of the images.
  ChannelLayout layout() const {
    ChannelLayout layout = activation_layout(x);
    layout.outer /= images();
    return layout;
  }
  template <class T>
  BnActTensors<T> tensors() const {
    const auto in = [](const at::Tensor& t) { return t.defined() ? elements<T>(t) : nullptr; };
    const auto out = [](const at::Tensor& t) {
      return t.defined() ? mutable_elements<T>(t) : nullptr;
    };
    return {layout(), in(x), in(residual), in(dy), out(y), out(dx), out(dresidual), images()};
  }
  BnActChannels channels() const {
    const auto in = [](const at::Tensor& t) { return t.defined() ? elements<float>(t) : nullptr; };
    return {in(gain), in(offset), in(mean), in(a), in(b)};
  }
  // cpu(tensors, channels) or cuda(tensors, channels, scratch); nothing where x is empty.
  template <class Cpu, class Cuda>
  void run(const Cpu& cpu, const Cuda& cuda) const {
    if (dx.defined() && residual.defined() != dresidual.defined())
      fail(op, "dresidual", dresidual.defined() ? "there" : "missing",
           "to be there exactly where the residual is");
    if (x.numel() == 0) return;
    with_element_type(x, [&]<class T>(T) {
      if (!x.is_cuda()) return cpu(tensors<T>(), channels());
      const CudaScope scope(op, x.device());
      const at::Tensor partial =
          at::empty({images() * channel_sums_scratch(layout())}, x.options().dtype(at::kDouble));
      if constexpr (kHasCuda)
        cuda(tensors<T>(), channels(),
             BnActScratch{partial.mutable_data_ptr<double>(), scope.stream()});
    });
  }
};

}  // namespace zsq::cuda_kernels
