// SPDX-License-Identifier: Apache-2.0
// Functions, pairs and reductions in LiteRT's float operators.
#pragma once
#include <stdexcept>

#include "exporters/tflite/builder.h"
#include "models/execute.h"

namespace zsq::exporters::tflite {

// What LiteRT has no operator for, in words that follow the node's name.
class NoOperator : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct IslandOps {
  Builder& builder;
  const models::Node& node;
  const models::ParameterStore& parameters;
  const std::vector<TensorId>& inputs;
  const models::Shape& out_shape;  // the student's order

  // Each adds operators for `node` and returns the result; throws NoOperator.
  TensorId write(const models::Elementwise& op) const;
  TensorId write(const models::PRelu& op) const;
  TensorId write(const models::Binary& op) const;
  TensorId write(const models::Reduce& op) const;

 private:
  TensorId each(BuiltinOperator code, std::vector<TensorId> values, const std::string& suffix,
                BuiltinOptionsUnion options = {}) const;
  TensorId number(double value, const char* suffix) const;
  TensorId exponential(double alpha, double inner, double outer) const;
  TensorId softplus(const std::string& suffix) const;
};

// The last function of the network's file, and its shape.
TensorId file_output(Builder& builder, const models::Signature& signature, TensorId x);

}  // namespace zsq::exporters::tflite
