// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/before_tail.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "models/execute.h"
#include "models/tail.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

// Names and numbers of dimensions; the sizes are left to the runtime.
std::vector<formats::onnx::ValueInfo> outputs_before_tail(const models::Model& network) {
  const auto [channels, height, width] = network.graph.input_shape;
  const auto row =
      infer(network.graph, network.parameters, at::zeros({1, channels, height, width}));
  std::vector<formats::onnx::ValueInfo> outputs;
  for (const auto& output : models::as_file_outputs(network.graph, row))
    outputs.push_back(
        {output.name, 1,
         std::vector<formats::onnx::Dimension>(static_cast<std::size_t>(output.value.dim()))});
  return outputs;
}

}  // namespace

void write_without_tail(const models::Model& network, const std::filesystem::path& from,
                        const std::filesystem::path& to) {
  auto file = formats::onnx::read(from);
  std::set<std::string> of_tail;
  for (const auto& node : network.graph.signature.tail->nodes)
    of_tail.insert(node.outputs.begin(), node.outputs.end());
  of_tail.erase("");
  std::set<std::string> given;
  std::erase_if(file.graph.nodes, [&](const auto& node) {
    const auto is_of_tail = [&](const auto& name) { return of_tail.contains(name); };
    if (std::ranges::any_of(node.outputs, is_of_tail)) return true;
    given.insert(node.outputs.begin(), node.outputs.end());
    return false;
  });
  file.graph.outputs = outputs_before_tail(network);
  for (const auto& output : file.graph.outputs)
    if (!given.contains(output.name))
      throw Error(ErrorCode::bad_input, "'" + from.string() + "' has no tensor '" + output.name +
                                            "', which the end of the network reads");
  formats::onnx::write(to, file);
}

}  // namespace zsq::pipeline
