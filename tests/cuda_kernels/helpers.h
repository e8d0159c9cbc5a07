// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "core/error.h"
#include "tests/support/seed_each_test.h"

namespace zsq::test {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline at::Tensor random(at::IntArrayRef shape, double spread = 1) {
  return at::randn(shape) * spread;
}

inline double relative_error(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found - wanted).norm() / wanted.norm()).item<double>();
}

// On the device on which tests make tensors (tests/support/emulated_cuda/default_device.h).
template <class T>
at::Tensor tensor_of(std::initializer_list<T> list) {
  return at::tensor(at::ArrayRef<T>(list.begin(), list.size()), at::device(at::kCPU))
      .to(at::empty({0}).device());
}
inline at::Tensor values(std::initializer_list<float> list) { return tensor_of(list); }

// Equal in every bit, NaN equal to NaN, -0 different from +0.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat)
    return false;
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return at::equal(at::isnan(x), at::isnan(y)) &&
         at::equal(at::nan_to_num(x).view(at::kInt), at::nan_to_num(y).view(at::kInt));
}

// The error that f throws; its message must hold `part`, in which a tensor is "on cpu" wherever
// tests run.
template <class F>
void expect_error(const F& f, const std::string& part, ErrorCode code = ErrorCode::internal) {
  try {
    f();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    const std::string message = std::regex_replace(error.what(), std::regex("cuda:0"), "cpu");
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

// The gradient that `output` sends to `input` (a leaf) when `grad` comes in.
inline at::Tensor gradient(const at::Tensor& output, const at::Tensor& input,
                           const at::Tensor& grad) {
  input.mutable_grad() = at::Tensor();
  output.backward(grad);
  return input.grad();
}

inline at::Tensor leaf(const at::Tensor& t) { return t.detach().requires_grad_(); }

}  // namespace zsq::test
