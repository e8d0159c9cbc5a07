// SPDX-License-Identifier: Apache-2.0
// Argument checks shared by the ops. Each throws Error(internal) that names op, argument, what was
// found and what was expected.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/fake_quant_implementations.h"

namespace zsq::cuda_kernels {

[[noreturn]] void fail(const char* op, const char* argument, const std::string& got,
                       const std::string& expected);

std::string describe(const at::Tensor& tensor);  // "Float[2, 3] on cpu"

// f32 on the CPU or on a CUDA device.
void check_float(const char* op, const char* argument, const at::Tensor& tensor);
// The same, or bf16.
void check_activation(const char* op, const char* argument, const at::Tensor& tensor);
// f32 on x's device, and of the given shape.
void check_like(const char* op, const char* argument, const at::Tensor& tensor, const at::Tensor& x,
                at::IntArrayRef shape);
// qmin < qmax, both small enough that float holds every code exactly.
CodeRange check_codes(const char* op, std::int64_t qmin, std::int64_t qmax);
// A symmetric grid needs qmin <= 0 < qmax.
void check_symmetric(const char* op, bool symmetric, std::int64_t qmin, std::int64_t qmax);
// A backward formula that is itself not recorded would give a silent zero as second derivative.
void check_first_order(const char* op);

// Dimension 1 of [N, C, ...] is the channel; x is contiguous or channels_last.
ChannelLayout activation_layout(const at::Tensor& x);

// x itself where its memory is dense (row-major or channels_last), else a row-major copy.
at::Tensor dense(const at::Tensor& x);
// `tensor` in exactly the memory order and the type of x.
at::Tensor in_order_of(const at::Tensor& x, const at::Tensor& tensor);

// The grid of a tensor: [] (or [1]) scale and zero point, or [C] along dimension 0.
struct GridTensors {
  at::Tensor scale, zero_point;
  ChannelLayout layout;
};
GridTensors check_grid(const char* op, const at::Tensor& x, const at::Tensor& scale,
                       const at::Tensor& zero_point);
// Points into `grid`, which has to outlive it.
GridView grid_view(const GridTensors& grid, CodeRange range);

// f(T()) for the T, float or Bf16, that x's elements are.
template <class F>
void with_element_type(const at::Tensor& x, const F& f) {
  x.scalar_type() == at::kBFloat16 ? f(Bf16()) : f(float());
}
template <class T>
const T* elements(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}
template <class T>
T* mutable_elements(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

}  // namespace zsq::cuda_kernels
