// SPDX-License-Identifier: Apache-2.0
#include "models/classifier.h"

#include <algorithm>

#include "core/error.h"

namespace zsq::models {

at::Tensor classifier_weight(const Model& model) {
  const auto& nodes = model.graph.nodes;
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), [](const Node& node) {
    return (is<Linear>(node) || is<Conv2d>(node)) && node.params.count("weight") != 0;
  });
  if (last != nodes.rend()) {
    const auto& weight = model.parameters.at(last->params.at("weight"));
    const bool linear = is<Linear>(*last);
    const bool pointwise = linear || (weight.size(2) == 1 && weight.size(3) == 1);
    if (pointwise && weight.size(0) == model.classes) return weight.detach().flatten(1);
  }
  throw Error(ErrorCode::unsupported_model,
              "the network has no last linear layer (or 1x1 convolution) that gives its " +
                  std::to_string(model.classes) + " logits");
}

}  // namespace zsq::models
