// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inspect.h"

#include <algorithm>

#include "losses/divergence.h"
#include "models/execute.h"
#include "models/load.h"
#include "models/operators.h"
#include "pipeline/report/json.h"
#include "pipeline/report/student_layers.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/session.h"
#include "quant/placement.h"
#include "quant/rewrites/equalize.h"

namespace zsq {
namespace {

std::int64_t parameter_count(const models::Model& model, const models::Node& node) {
  std::int64_t count = 0;
  for (const auto& [role, name] : node.params)
    if (role != "mean" && role != "variance") count += model.parameters.at(name).numel();
  return count;
}

std::vector<InspectLayer> list_layers(const models::Model& model) {
  const auto shapes = models::infer_shapes(model.graph, model.parameters);
  const auto macs = models::multiply_accumulates(model);
  std::vector<InspectLayer> layers;
  for (std::size_t id = 0; id < model.graph.nodes.size(); ++id) {
    const models::Node& node = model.graph.nodes[id];
    if (models::is<models::Parameter>(node)) continue;
    layers.push_back({node.name, models::op_name(node.op), shapes[id], parameter_count(model, node),
                      macs[id], 0, 0});
  }
  return layers;
}

bool is_quantized(const models::Model& model) {
  return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(),
                     [](const auto& node) { return quant::activation_quantizer(node) != nullptr; });
}

// The bits that each layer would have; the ranges do not matter here, so the quickest rule serves.
void add_student_bits(const models::Model& model, QuantOptions options, InspectReport& report) {
  options.weights.range = WeightRange::min_max;
  options.bias_correction = BiasCorrection::none;
  const quant::Student student = quant::insert_quantizers(quant::equalize(model, options), options);
  report.float_tensors = quant::float_tensors(student);
  for (const pipeline::StudentLayer& layer : pipeline::student_layers(student)) {
    for (InspectLayer& row : report.layers) {
      if (row.name != layer.name) continue;
      row.weight_bits = layer.weight_bits;
      row.activation_bits = layer.activation_bits;
    }
  }
}

InspectReport inspect_inside(const std::filesystem::path& path, Recipe recipe) {
  Observer silent;
  pipeline::take_size_from_preprocessing(path, recipe.data, recipe.model, silent);
  const models::Model model = pipeline::load_any(path, recipe.model, Device::cpu);
  InspectReport report;
  report.model = path.string();
  report.format = model.format;
  report.producer = model.producer;
  report.architecture = model.architecture;
  report.input_shape.assign(model.graph.input_shape.begin(), model.graph.input_shape.end());
  report.classes = model.classes;
  report.output_kind = losses::name_of(model.graph.signature.kind);
  report.notes = model.warnings;
  report.layers = list_layers(model);
  for (const InspectLayer& layer : report.layers) {
    report.parameters += layer.parameters;
    report.macs += layer.macs;
  }
  const models::BatchNormVerdict verdict = models::inspect_batch_norm(model);
  report.batch_norm = models::name_of(verdict.kind);
  report.explanation = verdict.explanation;
  report.batch_norm_layers = verdict.layers;
  report.batch_norm_channels = verdict.channels;
  report.dead_channels = verdict.dead_channels;
  report.quantizable = std::ranges::any_of(model.graph.nodes, quant::is_layer);
  if (is_quantized(model)) {
    report.quantizable = false;
    report.batch_norm = "folded";
    report.explanation = "already quantized; BatchNorm is part of its scales and biases";
  }
  if (report.quantizable) add_student_bits(model, recipe.quantize, report);
  return report;
}

}  // namespace

InspectReport inspect(const std::filesystem::path& model, const Recipe& recipe) {
  return pipeline::at_boundary([&] { return inspect_inside(model, recipe); });
}

std::vector<ArchitectureRow> architectures() {
  std::vector<ArchitectureRow> rows;
  for (const auto& one : models::architectures())
    rows.push_back(
        {one.name, one.also, one.parameters, one.image_size, one.paper, one.implementations});
  return rows;
}

std::string to_json(const std::vector<ArchitectureRow>& rows) {
  auto list = pipeline::Json::array();
  for (const ArchitectureRow& row : rows)
    list.push_back({{"name", row.name},
                    {"also", row.also},
                    {"parameters", row.parameters},
                    {"image_size", row.image_size},
                    {"paper", row.paper},
                    {"implementations", row.implementations}});
  return pipeline::dump({{"architectures", list}});
}

Operators operators() {
  const auto lists = models::operator_lists();
  return {lists.first_opset, lists.last_opset, lists.onnx, lists.onnx_constants, lists.aten};
}

std::string to_json(const Operators& lists) {
  return pipeline::dump({{"first_opset", lists.first_opset},
                         {"last_opset", lists.last_opset},
                         {"onnx", lists.onnx},
                         {"onnx_constants", lists.onnx_constants},
                         {"aten", lists.aten}});
}

std::string to_json(const InspectReport& report) {
  auto layers = pipeline::Json::array();
  for (const InspectLayer& layer : report.layers)
    layers.push_back({{"name", layer.name},
                      {"op", layer.op},
                      {"shape", layer.shape},
                      {"parameters", layer.parameters},
                      {"macs", layer.macs},
                      {"weight_bits", layer.weight_bits},
                      {"activation_bits", layer.activation_bits}});
  return pipeline::dump({{"model", report.model},
                         {"format", report.format},
                         {"producer", report.producer},
                         {"architecture", report.architecture},
                         {"input_shape", report.input_shape},
                         {"classes", report.classes},
                         {"output_kind", report.output_kind},
                         {"parameters", report.parameters},
                         {"macs", report.macs},
                         {"quantizable", report.quantizable},
                         {"batch_norm",
                          {{"verdict", report.batch_norm},
                           {"layers", report.batch_norm_layers},
                           {"channels", report.batch_norm_channels},
                           {"dead_channels", report.dead_channels},
                           {"explanation", report.explanation}}},
                         {"notes", report.notes},
                         {"float_tensors", report.float_tensors},
                         {"layers", layers}});
}

}  // namespace zsq
