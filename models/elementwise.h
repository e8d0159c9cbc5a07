// SPDX-License-Identifier: Apache-2.0
// The table of the functions of one value that a graph may hold as an Elementwise node (graph.h).
//   elu               x > 0: x, else alpha (e^x - 1)
//   celu              x > 0: x, else alpha (e^(x / alpha) - 1)
//   selu              beta times elu
//   tanh, erf, exp, log, sqrt, abs, neg, sin, cos, floor, ceil, round (half to even), sign
//   softplus          log(1 + e^x)
//   mish              x tanh(softplus(x))
//   gelu_tanh         x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//   softsign          x / (1 + |x|)
//   thresholded_relu  x > alpha: x, else 0
//   reciprocal        1 / x
//   power             x^alpha
// Sources: the ONNX specification of Elu, Celu, Selu, ...; gelu_tanh: Hendrycks and Gimpel,
// arXiv 1606.08415; mish: Misra, arXiv 1908.08681. Autograd differentiates them.
#pragma once
#include <span>
#include <string_view>

#include "models/graph.h"

namespace zsq::models {

struct FunctionInfo {
  Function function;
  std::string_view name;  // printed by inspect: "Elu"
  std::string_view onnx;  // ONNX's operator if it is one of opset 13; empty: written in parts
  at::Tensor (*value)(const at::Tensor& x, double alpha, double beta);
};
std::span<const FunctionInfo> functions();  // a row per Function, in its order
const FunctionInfo& info(Function function);

// f32 of any shape -> the same shape.
at::Tensor apply(const Elementwise& op, const at::Tensor& x);

}  // namespace zsq::models
