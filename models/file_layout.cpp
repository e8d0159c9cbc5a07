// SPDX-License-Identifier: Apache-2.0
#include "models/file_layout.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "models/execute.h"

namespace zsq::models {

at::Tensor from_file_input(const Graph& graph, const at::Tensor& input) {
  const bool channels_last = graph.signature.channels_last && input.dim() == 4;
  return channels_last ? input.permute({0, 3, 1, 2}).contiguous() : input;
}

at::Tensor as_file_output(const Graph& graph, const at::Tensor& output) {
  const auto finish = [&] {
    switch (graph.signature.function) {
      case OutputFunction::softmax:
        return at::softmax(output, 1);
      case OutputFunction::log_softmax:
        return at::log_softmax(output, 1);
      case OutputFunction::sigmoid:
        return at::sigmoid(output);
      case OutputFunction::none:
        break;
    }
    return output;
  };
  std::vector<std::int64_t> shape{output.size(0)};
  const auto& rest = graph.signature.output_shape;
  shape.insert(shape.end(), rest.begin(), rest.end());
  return rest.empty() ? finish() : finish().reshape(shape);
}

}  // namespace zsq::models
