// SPDX-License-Identifier: Apache-2.0
#include "models/elementwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/log.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/threshold.h>

#include "core/error.h"

namespace zsq::models {
namespace {

using at::Tensor;

template <Tensor (*Op)(const Tensor&)>
Tensor plain(const Tensor& x, double, double) {
  return Op(x);
}

constexpr FunctionInfo kFunctions[] = {
    {Function::elu, "Elu", "Elu",
     [](const Tensor& x, double alpha, double) { return at::elu(x, alpha); }},
    {Function::celu, "Celu", "Celu",
     [](const Tensor& x, double alpha, double) { return at::celu(x, alpha); }},
    {Function::selu, "Selu", "Selu",
     [](const Tensor& x, double alpha, double beta) { return at::elu(x, alpha, beta); }},
    {Function::tanh, "Tanh", "Tanh", plain<at::tanh>},
    {Function::softplus, "Softplus", "Softplus",
     [](const Tensor& x, double, double) { return at::softplus(x); }},
    {Function::mish, "Mish", "", plain<at::mish>},
    {Function::gelu_tanh, "GeluTanh", "",
     [](const Tensor& x, double, double) { return at::gelu(x, "tanh"); }},
    {Function::softsign, "Softsign", "Softsign",
     [](const Tensor& x, double, double) { return x / (at::abs(x) + 1); }},
    {Function::thresholded_relu, "ThresholdedRelu", "ThresholdedRelu",
     [](const Tensor& x, double alpha, double) { return at::threshold(x, alpha, 0); }},
    {Function::erf, "Erf", "Erf", plain<at::erf>},
    {Function::exp, "Exp", "Exp", plain<at::exp>},
    {Function::log, "Log", "Log", plain<at::log>},
    {Function::sqrt, "Sqrt", "Sqrt", plain<at::sqrt>},
    {Function::reciprocal, "Reciprocal", "Reciprocal", plain<at::reciprocal>},
    {Function::abs, "Abs", "Abs", plain<at::abs>},
    {Function::neg, "Neg", "Neg", plain<at::neg>},
    {Function::power, "Pow", "",
     [](const Tensor& x, double alpha, double) { return at::pow(x, alpha); }},
    {Function::sin, "Sin", "Sin", plain<at::sin>},
    {Function::cos, "Cos", "Cos", plain<at::cos>},
    {Function::floor, "Floor", "Floor", plain<at::floor>},
    {Function::ceil, "Ceil", "Ceil", plain<at::ceil>},
    {Function::round, "Round", "Round",
     [](const Tensor& x, double, double) { return at::round(x); }},
    {Function::sign, "Sign", "Sign", plain<at::sign>},
};

}  // namespace

std::span<const FunctionInfo> functions() { return kFunctions; }

const FunctionInfo& info(Function function) {
  const auto row = static_cast<std::size_t>(function);
  if (row >= std::size(kFunctions) || kFunctions[row].function != function)
    throw Error(ErrorCode::internal, "a function has no row in its place of the table");
  return kFunctions[row];
}

Tensor apply(const Elementwise& op, const Tensor& x) {
  return info(op.function).value(x, op.alpha, op.beta);
}

}  // namespace zsq::models
