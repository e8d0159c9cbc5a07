// SPDX-License-Identifier: Apache-2.0
#include "models/operators.h"

#include "models/aten/program.h"
#include "models/onnx/importer.h"
#include "models/onnx/opsets.h"

namespace zsq::models {

OperatorLists operator_lists() {
  OperatorLists lists;
  lists.first_opset = onnx::kFirstOpset;
  lists.last_opset = onnx::kLastOpset;
  for (const auto& [name, rule] : onnx::registry())
    (rule.convert ? lists.onnx : lists.onnx_constants).push_back(name);
  for (const auto& [name, rule] : aten::registry()) lists.aten.push_back(name);
  return lists;
}

}  // namespace zsq::models
