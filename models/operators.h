// SPDX-License-Identifier: Apache-2.0
// Which operators the importers read.
#pragma once
#include <string>
#include <vector>

namespace zsq::models {

struct OperatorLists {
  std::vector<std::string> onnx;            // by name, of opsets first_opset to last_opset
  std::vector<std::string> onnx_constants;  // on constants and sizes only
  std::vector<std::string> aten;            // of TorchScript and exported programs (.pt2)
  int first_opset = 0, last_opset = 0;
};
OperatorLists operator_lists();

}  // namespace zsq::models
