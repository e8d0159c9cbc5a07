// SPDX-License-Identifier: Apache-2.0
#include "models/exporter.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace zsq::models {
namespace {

// Of the ways to TorchScript only torch.jit.freeze drops BatchNorm; torch.export keeps it.
constexpr const char* kTorchScriptLine =
    "torch.jit.trace(model.eval(), x).save(\"m.pt\")  # or, of a script, "
    "torch.jit.freeze(script, optimize_numerics=False).save(\"m.pt\")";
constexpr const char* kExportedProgramLine =
    "torch.export.save(torch.export.export(model.eval(), (x,), "
    "dynamic_shapes=({0: torch.export.Dim(\"N\")},)), \"m.pt2\")";
// Of the exporter by TorchScript. PRESERVE keeps each module's mode, and BatchNorm.
// do_constant_folding=False alone does so in PyTorch 2.11, but not in 1.7 (issue 49226 of PyTorch).
constexpr const char* kOnnxLine =
    "torch.onnx.export(model.eval(), x, \"m.onnx\", %s"
    "training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, opset_version=%d, "
    "input_names=[\"input\"], output_names=[\"logits\"], "
    "dynamic_axes={\"input\": {0: \"N\"}, \"logits\": {0: \"N\"}})";
// This exporter accepts training= and do_constant_folding= and ignores both (PyTorch 2.11).
constexpr const char* kDynamoLine =
    "torch.onnx.export(model.eval(), (x,), \"m.onnx\", dynamo=True, optimize=False, "
    "external_data=False, input_names=[\"input\"], output_names=[\"logits\"], "
    "dynamic_shapes=({0: torch.export.Dim(\"N\")},))  # x with two images or more";
// Its back-to-back optimizer fuses Conv and BatchNormalization, and no flag turns that off (issues
// 1702 and 1929 of tensorflow-onnx).
constexpr const char* kTensorflowAdvice =
    "tf2onnx has no option that keeps BatchNorm; write moving_mean, moving_variance, gamma and "
    "beta "
    "of the Keras layers into a file for --bn_stats";

struct Version {
  int major = 0, minor = 0;
};

// The exporter by torch.export names nodes "node_relu", the older one "/relu/Relu"; layers have the
// names of their weights here.
bool is_dynamo(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.name.starts_with("node_"); });
}

// The argument dynamo came with 2.5; opset 17 with 1.12.
std::string onnx_line(const std::string& version) {
  Version v{99, 0};
  std::sscanf(version.c_str(), "%d.%d", &v.major, &v.minor);
  const auto before = [&](int major, int minor) {
    return v.major < major || (v.major == major && v.minor < minor);
  };
  char text[512];
  std::snprintf(text, sizeof text, kOnnxLine, before(2, 5) ? "" : "dynamo=False, ",
                before(1, 12) ? 13 : 17);
  return text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Exporter exporter_of(const Model& model) {
  if (model.format == "torchscript") return {"torch.jit", "", kTorchScriptLine};
  const auto space = model.producer.find(' ');
  const auto name = model.producer.substr(0, space);
  const auto version = space == std::string::npos ? "" : model.producer.substr(space + 1);
  if (model.format == "pt2") return {"torch.export", version, kExportedProgramLine, "", true};
  if (lower(name) == "pytorch") {
    if (is_dynamo(model.graph))
      return {"PyTorch's ONNX exporter by torch.export (dynamo=True)", version, kDynamoLine, "",
              true};
    return {"PyTorch's ONNX exporter by TorchScript (dynamo=False)", version, onnx_line(version),
            "", true};
  }
  if (lower(name) == "tf2onnx") return {name, version, "", kTensorflowAdvice};
  return {name, version, ""};
}

}  // namespace zsq::models
