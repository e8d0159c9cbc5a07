// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "models/load.h"

namespace zsq::models {
namespace {

// A channel whose variance vanished in training says nothing about the images.
constexpr double kDeadVariance = 1e-10;

// Export lines that keep BatchNorm. Of the ways to TorchScript only torch.jit.freeze drops it.
constexpr const char* kTorchScriptLine =
    "torch.jit.trace(model.eval(), x).save(\"m.pt\")  # or, of a script, "
    "torch.jit.freeze(script, optimize_numerics=False).save(\"m.pt\")";
constexpr const char* kExportedProgramLine =
    "torch.export.save(torch.export.export(model.eval(), (x,), "
    "dynamic_shapes=({0: torch.export.Dim(\"N\")},)), \"m.pt2\")";
constexpr const char* kOnnxLine =
    "torch.onnx.export(model.eval(), x, \"m.onnx\", dynamo=False, "
    "training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, opset_version=17, "
    "input_names=[\"input\"], output_names=[\"logits\"], "
    "dynamic_axes={\"input\": {0: \"N\"}, \"logits\": {0: \"N\"}})";

// An exporter that folds BatchNorm gives the convolution a bias under a name of its own making; one
// that had a bias all along keeps it as the sibling "<layer>.bias" of "<layer>.weight". A frozen
// TorchScript has lost all names.
bool looks_folded(const Graph& graph) {
  std::int64_t biases = 0, made_up = 0;
  for (const auto& node : graph.nodes) {
    const auto weight = node.params.find("weight"), bias = node.params.find("bias");
    if (!is<Conv2d>(node) || weight == node.params.end() || bias == node.params.end()) continue;
    const auto layer = weight->second.substr(0, weight->second.rfind('.'));
    if (layer == "CONSTANTS") continue;
    ++biases;
    made_up += bias->second == layer + ".bias" ? 0 : 1;
  }
  return 2 * made_up > biases;
}

std::string export_line(const Model& model) {
  if (model.format == "torchscript") return kTorchScriptLine;
  return model.format == "pt2" ? kExportedProgramLine : kOnnxLine;
}

std::string origin(const Model& model) {
  const auto file = model.source_path.empty() ? std::string("The network")
                                              : "The network in '" + model.source_path + "'";
  return file + (model.producer.empty() ? "" : " (written by " + model.producer + ")");
}

}  // namespace

BatchNormVerdict inspect_batch_norm(const Model& model) {
  BatchNormVerdict verdict;
  for (const auto& node : model.graph.nodes) {
    if (!is<BatchNorm>(node)) continue;
    const auto& gamma = model.parameters.at(node.params.at("gamma"));
    const auto& variance = model.parameters.at(node.params.at("variance"));
    ++verdict.layers;
    verdict.channels += gamma.numel();
    verdict.negative_gammas += gamma.lt(0).sum().item<std::int64_t>();
    verdict.dead_channels += variance.lt(kDeadVariance).sum().item<std::int64_t>();
  }
  if (verdict.layers > 0) {
    verdict.explanation = std::to_string(verdict.layers) + " BatchNorm layers with " +
                          std::to_string(verdict.channels) + " channels";
    return verdict;
  }
  if (looks_folded(model.graph)) {
    verdict.kind = BatchNormVerdict::Kind::folded;
    verdict.explanation =
        origin(model) +
        " has no BatchNorm layers: its convolutions carry biases with names made up by the "
        "exporter, so BatchNorm was folded into them on export, and the statistics that data-free "
        "quantization needs are gone. Export it again with BatchNorm kept:\n  " +
        export_line(model);
  } else {
    verdict.kind = BatchNormVerdict::Kind::none;
    verdict.explanation =
        origin(model) +
        " has no BatchNorm layers. Data-free quantization takes the distribution of the training "
        "images from their running statistics, so it needs a network that was trained with them. "
        "If yours was, the export dropped them; this line keeps them:\n  " +
        export_line(model);
  }
  return verdict;
}

void require_batch_norm(const Model& model) {
  const auto verdict = inspect_batch_norm(model);
  if (verdict.kind != BatchNormVerdict::Kind::usable) {
    throw Error(ErrorCode::unsupported_model, verdict.explanation);
  }
}

}  // namespace zsq::models
