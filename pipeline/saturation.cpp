// SPDX-License-Identifier: Apache-2.0
#include "pipeline/saturation.h"

#include "core/error.h"
#include "core/observer.h"
#include "formats/onnx.h"
#include "models/load.h"

namespace zsq::pipeline {
namespace {

// int8 with zero point 0, by the names of the dequantized tensors.
quant::Int8Scales int8_scales(const formats::onnx::Graph& graph) {
  quant::Int8Scales scales;
  for (const formats::onnx::Node& node : graph.nodes) {
    if (node.op_type != "DequantizeLinear" || node.inputs.size() < 2) continue;
    const auto initializer = [&](std::size_t i) {
      return i < node.inputs.size() ? formats::find(graph.initializers, node.inputs[i]) : nullptr;
    };
    const formats::Array *codes = initializer(0), *scale = initializer(1), *zero = initializer(2);
    if (!codes || !scale || codes->dtype != formats::DType::i8) continue;
    if (zero && models::to_tensor(*zero).any().item<bool>()) continue;
    scales[node.outputs.at(0)] = models::to_tensor(*scale).to(at::kFloat);
  }
  return scales;
}

}  // namespace

quant::SaturatingNetwork saturating_network(const models::Model& model,
                                            const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "model.onnx" : path;
  quant::Int8Scales scales;
  if (model.format == "onnx") scales = int8_scales(formats::onnx::read(file).graph);
  if (scales.empty())
    throw Error(
        ErrorCode::usage,
        "'" + path.string() +
            "' holds no int8 weights, so that nothing is multiplied in 16 bits; --arithmetic "
            "avx2 takes an exported ONNX file or the output folder of a run");
  return quant::with_pair_saturation(model.graph, model.parameters, scales);
}

void use_arithmetic(Arithmetic arithmetic, const std::filesystem::path& path, models::Model& model,
                    Observer& observer) {
  if (arithmetic == Arithmetic::exact) return;
  quant::SaturatingNetwork network = saturating_network(model, path);
  model.graph = std::move(network.graph);
  observer.on_message(
      LogLevel::info,
      network.layers == 0
          ? "no sum of two products can exceed 16 bits: the same on every x86 processor"
          : "without VNNI, sums of two products saturate in " + std::to_string(network.layers) +
                " layers (" + std::to_string(network.channels) + " output channels)");
}

}  // namespace zsq::pipeline
