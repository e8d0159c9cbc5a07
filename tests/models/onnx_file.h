// SPDX-License-Identifier: Apache-2.0
// Small ONNX models in memory. A test adds nodes between "x" and "y"; Flatten makes logits of "y".
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "models/load.h"

namespace zsq::test {

using Names = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;
using Attributes = std::vector<formats::onnx::Attribute>;

class OnnxFile {
 public:
  OnnxFile(std::int64_t opset, const Ints& image) {
    file.opset = opset;
    formats::onnx::ValueInfo input{"x", 1, {{-1, "N"}}};
    for (const auto size : image) input.shape.push_back({size, ""});
    file.graph.inputs.push_back(input);
    file.graph.outputs.push_back({"logits", 1, {}});
  }

  OnnxFile& node(const std::string& type, Names inputs, Names outputs, Attributes attributes = {}) {
    file.graph.nodes.push_back(
        {"node_" + outputs[0], type, "", std::move(inputs), std::move(outputs), attributes});
    return *this;
  }
  OnnxFile& initializer(const std::string& name, const at::Tensor& value) {
    file.graph.initializers.emplace_back(name, models::to_array(value));
    return *this;
  }
  models::Model import(const models::LoadOptions& options = {}) const {
    auto whole = file;
    whole.graph.nodes.push_back({"flatten", "Flatten", "", {"y"}, {"logits"}, {}});
    return models::import_onnx(whole, options);
  }
  at::Tensor run(const at::Tensor& x, const models::LoadOptions& options = {}) const {
    const at::NoGradGuard no_grad;
    const auto model = import(options);
    return models::as_file_output(model.graph, models::execute(model.graph, model.parameters, x));
  }

  formats::onnx::Model file;
};

// What the importer says of a graph that it refuses.
inline std::string refusal(const OnnxFile& file, const models::LoadOptions& options = {}) {
  try {
    file.import(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    return error.what();
  }
  return "accepted";
}

}  // namespace zsq::test
