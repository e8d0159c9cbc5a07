// SPDX-License-Identifier: Apache-2.0
// Functions, pairs, products, reductions and changes of size in ncnn's layers, all in float.
// Settings are those of the layers' documentation ("operators.md" of ncnn).
#pragma once
#include "exporters/ncnn/float_ops.h"

namespace zsq::exporters::ncnn {

struct IslandWriter {
  Net& net;
  const models::Node& node;
  const models::ParameterStore& store;
  const std::vector<std::string>& inputs;
  const std::vector<models::Shape>& input_shapes;
  const models::Shape& output_shape;

  // Each adds layers for `node` and returns the output's blob; throws NoLayer.
  std::string write(const models::Elementwise& op) const;
  std::string write(const models::PRelu& op) const;
  std::string write(const models::Binary& op) const;
  std::string write(const models::MatMul& op) const;
  std::string write(const models::Reduce& op) const;
  std::string write(const models::Interpolate& op) const;

 private:
  std::string plain(const char* type, Settings settings, Weights weights = {}) const;
};

// The last function of the network's file, and its shape; throws NoLayer.
std::string add_file_output(Net& net, const models::Signature& signature, std::string x);

// ncnn ends names at white space.
std::string one_word(std::string name);

}  // namespace zsq::exporters::ncnn
