// SPDX-License-Identifier: Apache-2.0
// What the tests of single ONNX operators share: values, an image, and comparisons.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include "tests/models/onnx_file.h"

namespace zsq::models {

using test::Attributes;
using test::Ints;
using test::Names;
using test::OnnxFile;
using test::refusal;

inline at::Tensor wave(const Ints& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return at::linspace(0, 0.37 * static_cast<double>(count), count).sin().mul(3).reshape(shape);
}
inline at::Tensor ints(const Ints& values) { return at::tensor(values, at::kLong); }
inline at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kFloat); }

inline void expect_near(const at::Tensor& result, const at::Tensor& expected) {
  ASSERT_EQ(result.sizes(), expected.flatten(1).sizes());
  EXPECT_TRUE(at::allclose(result, expected.flatten(1), 1e-4, 1e-5));
}

template <class Op>
std::int64_t count(const Model& model) {
  std::int64_t result = 0;
  for (const auto& node : model.graph.nodes) result += is<Op>(node) ? 1 : 0;
  return result;
}

inline const Ints kImage{4, 9, 7};
inline const at::Tensor& image() {
  static const auto x = wave({2, 4, 9, 7});
  return x;
}

}  // namespace zsq::models
