// SPDX-License-Identifier: Apache-2.0
// Collects nodes and initialisers of an ONNX graph. Knows types, not operators.
#pragma once
#include <set>

#include "formats/onnx.h"

namespace zsq::exporters {

class OnnxBuilder {
 public:
  explicit OnnxBuilder(std::int64_t opset) { model_.opset = opset; }

  using Values = std::vector<std::string>;
  using Attributes = std::vector<formats::onnx::Attribute>;

  // A name that no value has yet: `wanted`, or `wanted` with a number after it.
  std::string unique(const std::string& wanted);

  // Adds a node with one output and returns the name of that, which starts with `wanted`.
  std::string node(const std::string& op_type, const Values& inputs, const std::string& wanted,
                   Attributes attributes = {});

  // An initialiser; the second one asked for under a name is the first one again.
  std::string constant(const std::string& name, formats::Array array);
  std::string floats(const std::string& name, const std::vector<float>& values);
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values);
  std::string scalar(const std::string& name, float value);
  std::string scalar(const std::string& name, std::uint8_t value);
  std::string scalar(const std::string& name, std::int8_t value);

  void require_opset(std::int64_t opset);  // and the IR version that came with it
  // Gives a value another name everywhere.
  void rename(const std::string& from, const std::string& to);

  formats::onnx::Model& model() { return model_; }

 private:
  formats::onnx::Model model_;
  std::set<std::string> names_, constants_;
};

}  // namespace zsq::exporters
