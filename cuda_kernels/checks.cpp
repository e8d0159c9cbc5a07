// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/checks.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <sstream>

#include "core/error.h"

namespace zsq::cuda_kernels {
namespace {

constexpr std::int64_t kLargestCode = 1 << 23;

bool strided_on_known_device(const at::Tensor& tensor) {
  return (tensor.is_cpu() || tensor.is_cuda()) && tensor.layout() == at::kStrided;
}

bool is_dense(const at::Tensor& x) {
  return x.is_contiguous() || x.is_contiguous(at::MemoryFormat::ChannelsLast) ||
         x.is_contiguous(at::MemoryFormat::ChannelsLast3d);
}

std::string describe(at::IntArrayRef shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

}  // namespace

void fail(const char* op, const char* argument, const std::string& got,
          const std::string& expected) {
  throw Error(ErrorCode::internal,
              std::string(op) + ": " + argument + " is " + got + ", expected " + expected);
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::ostringstream out;
  out << tensor.scalar_type() << tensor.sizes() << " on " << tensor.device();
  return out.str();
}

void check_float(const char* op, const char* argument, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() != at::kFloat || !strided_on_known_device(tensor))
    fail(op, argument, describe(tensor), "a dense Float tensor on cpu or cuda");
}

void check_activation(const char* op, const char* argument, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.scalar_type() == at::kBFloat16 && strided_on_known_device(tensor))
    return;
  check_float(op, argument, tensor);
}

void check_like(const char* op, const char* argument, const at::Tensor& tensor, const at::Tensor& x,
                at::IntArrayRef shape) {
  if (!tensor.defined() || tensor.scalar_type() != at::kFloat || tensor.device() != x.device() ||
      tensor.sizes() != shape)
    fail(op, argument, describe(tensor), "Float" + describe(shape) + " on " + x.device().str());
}

CodeRange check_codes(const char* op, std::int64_t qmin, std::int64_t qmax) {
  if (qmin >= qmax || qmin < -kLargestCode || qmax > kLargestCode)
    fail(op, "[qmin, qmax]", "[" + std::to_string(qmin) + ", " + std::to_string(qmax) + "]",
         "qmin < qmax, both within +-2^23");
  return {static_cast<float>(qmin), static_cast<float>(qmax)};
}

void check_symmetric(const char* op, bool symmetric, std::int64_t qmin, std::int64_t qmax) {
  if (symmetric && (qmin > 0 || qmax <= 0))
    fail(op, "[qmin, qmax]", "[" + std::to_string(qmin) + ", " + std::to_string(qmax) + "]",
         "qmin <= 0 < qmax for a symmetric grid");
}

void check_first_order(const char* op) {
  if (at::GradMode::is_enabled())
    fail(op, "backward", "asked for a graph of its own (create_graph)", "first derivatives only");
}

ChannelLayout activation_layout(const at::Tensor& x) {
  const std::int64_t channels = x.size(1);
  if (x.numel() == 0) return {0, channels, 1};
  const std::int64_t inner = x.is_contiguous() ? x.numel() / x.size(0) / channels : 1;
  return {x.numel() / channels / inner, channels, inner};
}

at::Tensor dense(const at::Tensor& x) { return is_dense(x) ? x : x.contiguous(); }

at::Tensor in_order_of(const at::Tensor& x, const at::Tensor& tensor) {
  if (tensor.strides() == x.strides() && tensor.scalar_type() == x.scalar_type()) return tensor;
  return at::empty_like(x).copy_(tensor);
}

GridTensors check_grid(const char* op, const at::Tensor& x, const at::Tensor& scale,
                       const at::Tensor& zero_point) {
  if (!scale.defined() || scale.dim() > 1)
    fail(op, "scale", describe(scale), "shape [] or [C] with C = dimension 0 of x");
  const bool per_tensor = scale.numel() == 1;
  if (!per_tensor && x.dim() == 0) fail(op, "scale", describe(scale), "shape [], as x has none");
  const at::IntArrayRef shape = per_tensor ? scale.sizes() : x.sizes().slice(0, 1);
  check_like(op, "scale", scale, x, shape);
  check_like(op, "zero_point", zero_point, x, scale.sizes());
  GridTensors grid{scale.contiguous(), zero_point.contiguous(), {1, 1, x.numel()}};
  if (!per_tensor) {
    grid.layout.channels = x.size(0);
    grid.layout.inner = x.size(0) ? x.numel() / x.size(0) : 0;
  }
  return grid;
}

GridView grid_view(const GridTensors& grid, CodeRange range) {
  return {grid.scale.const_data_ptr<float>(), grid.zero_point.const_data_ptr<float>(),
          grid.layout.channels, grid.layout.inner, range};
}

}  // namespace zsq::cuda_kernels
