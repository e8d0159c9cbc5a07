// SPDX-License-Identifier: Apache-2.0
#include "models/file_layout.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "models/execute.h"

namespace zsq::models {

at::Tensor from_file_input(const Graph& graph, const at::Tensor& input) {
  if (graph.signature.one_dimensional && input.dim() == 3) return input.unsqueeze(2);
  if (graph.signature.one_image && input.dim() == 3) return input.unsqueeze(0);
  const bool channels_last = graph.signature.channels_last && input.dim() == 4;
  return channels_last ? input.permute({0, 3, 1, 2}).contiguous() : input;
}

namespace {

at::Tensor apply(OutputFunction function, const at::Tensor& x, std::int64_t axis) {
  switch (function) {
    case OutputFunction::softmax:
      return at::softmax(x, axis);
    case OutputFunction::log_softmax:
      return at::log_softmax(x, axis);
    case OutputFunction::sigmoid:
      return at::sigmoid(x);
    case OutputFunction::none:
      break;
  }
  return x;
}

at::Tensor reshaped(const at::Tensor& x, const std::vector<std::int64_t>& rest) {
  std::vector<std::int64_t> shape{x.size(0)};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return x.reshape(shape);
}

}  // namespace

std::vector<FileTensor> as_file_outputs(const Graph& graph, const at::Tensor& row) {
  const Signature& file = graph.signature;
  const auto& outputs = file.kind.outputs();
  if (outputs.empty()) {
    const auto value = apply(file.function, row, 1);
    return {{file.output, file.output_shape.empty() ? value : reshaped(value, file.output_shape)}};
  }
  const auto parts = parts_of(file.kind, row);
  std::vector<FileTensor> tensors;
  for (std::size_t i = 0; i < parts.size(); ++i)
    tensors.push_back({outputs[i].name, apply(outputs[i].function, parts[i], outputs[i].axis)});
  return tensors;
}

std::vector<at::Tensor> parts_of(const OutputRow& outputs, const at::Tensor& row) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const Output& output : outputs.outputs()) {
    parts.push_back(reshaped(row.narrow(1, begin, output.length()), output.shape));
    begin += output.length();
  }
  return parts;
}

at::Tensor as_file_output(const Graph& graph, const at::Tensor& row) {
  return as_file_outputs(graph, row).front().value;
}

}  // namespace zsq::models
