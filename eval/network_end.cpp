// SPDX-License-Identifier: Apache-2.0
#include "eval/network_end.h"

#include "models/tail.h"

namespace zsq::eval {

NetworkEnd end_of(const models::Graph& graph) {
  NetworkEnd end;
  using models::OutputFunction;
  for (const models::Output& output : graph.signature.kind.outputs())
    end.is_probability.push_back(output.function == OutputFunction::softmax ||
                                 output.function == OutputFunction::sigmoid);
  const auto& tail = graph.signature.tail;
  if (!tail) return end;
  end.opaque = models::operators_of(*tail);
  bool suppresses = false;
  for (const formats::onnx::Node& node : tail->nodes) {
    end.takes_best = end.takes_best || node.op_type == "TopK";
    if (node.op_type != "NonMaxSuppression") continue;
    suppresses = true;
    const auto* attribute = node.find("center_point_box");
    const auto* value = attribute ? std::get_if<std::int64_t>(&attribute->value) : nullptr;
    end.centred = value && *value == 1;
  }
  end.takes_best = end.takes_best && !suppresses;
  return end;
}

}  // namespace zsq::eval
