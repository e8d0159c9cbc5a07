// SPDX-License-Identifier: Apache-2.0
// The operators of quant::is_float_island() that stand for functions, pairs, products, reductions
// and changes of size as ONNX operators. Opset 13 but for reductions with axes as input (18),
// Resize with antialias (18), half_pixel_symmetric and Pad that wraps (19).
#pragma once
#include "exporters/onnx_builder.h"
#include "models/execute.h"

namespace zsq::exporters {

struct IslandWriter {
  OnnxBuilder& builder;
  const models::Node& node;
  const models::ParameterStore& parameters;
  const OnnxBuilder::Values& inputs;
  const models::Shape& shape;  // of the first input

  // Each adds nodes for `node` and returns the output's name. A function without an ONNX operator
  // is written in parts: Mish = x Tanh(Softplus(x)).
  std::string write(const models::Elementwise& op) const;
  std::string write(const models::PRelu& op) const;
  std::string write(const models::Binary& op) const;
  std::string write(const models::MatMul& op) const;
  std::string write(const models::Reduce& op) const;
  std::string write(const models::Expand& op) const;
  std::string write(const models::Interpolate& op) const;
  std::string write(const models::Pad& op) const;
  // `values`: the inputs of ONNX's Resize.
  std::string resize(const models::Interpolate& op, const OnnxBuilder::Values& values) const;

 private:
  std::string part(const char* type, const OnnxBuilder::Values& values, const char* suffix) const;
  std::string number(const char* suffix, double value) const;
  std::string gelu_tanh() const;
};

}  // namespace zsq::exporters
