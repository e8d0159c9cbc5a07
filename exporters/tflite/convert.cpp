// SPDX-License-Identifier: Apache-2.0
// The walk over a student that writes its operators.
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "core/error.h"
#include "exporters/file_outputs.h"
#include "exporters/node_writer.h"
#include "exporters/tflite/arithmetic.h"
#include "exporters/tflite/float_ops.h"
#include "exporters/tflite/integer_ops.h"
#include "exporters/tflite/island_ops.h"
#include "exporters/tflite/layers.h"
#include "exporters/tflite/layout.h"
#include "exporters/tflite/shape_ops.h"
#include "exporters/tflite/tflite.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/target_rules.h"

namespace zsq::exporters {
namespace tflite {
namespace {

using models::NodeId;

constexpr TensorId kNone = -1;

// A node's value as floats and as codes, where they are written.
struct Value {
  TensorId real = kNone, codes = kNone;
};

class Converter : NodeWriter<Value> {
 public:
  Converter(const quant::Student& student, const Plan& plan) : NodeWriter(student, plan) {
    for (const ExecutesAs& layer : plan.layers)
      runs_in_float_[layer.layer] = layer.executes_as == "float";
  }

  void run(const std::filesystem::path& path, const exporters::Metadata& metadata) && {
    require_one_row(graph_.signature, "tflite");
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) try {
        write(static_cast<NodeId>(i));
      } catch (const NoOperator& error) {  // the first: what follows has no input
        refuse(graph_.nodes[i].name, error.what());
        break;
      }
    require_nothing_refused();
    const models::Signature& signature = graph_.signature;
    const TensorId output = file_output(builder_, signature, real(graph_.output));
    std::move(builder_).write(path, output, signature.output, metadata);
  }

 private:
  Value input() override {
    return {.real = builder_.input(graph_.signature.input, stored_shape(shapes_[graph_.input]))};
  }

  // An operator on codes has written those of the quantizer after it.
  Value quantizer(NodeId id, const quant::ActivationQuantizer&) override {
    return values_[id].codes == kNone ? Value{.codes = quantize(id)} : values_[id];
  }

  Value layer(NodeId id) override {
    if (models::is<models::Linear>(graph_[id]) && shapes_[id].size() != 2)
      throw NoOperator("a linear layer on a tensor that is not [N, features]");
    return operation(id);
  }

  Value operation(NodeId id) override {
    return in_integers(id) ? Value{} : Value{.real = in_float(id)};
  }

  Value value(NodeId id) override { return values_[id]; }

  // The float tensor of a node that comes earlier.
  TensorId real(NodeId id) {
    const models::Node& node = graph_[id];
    Value& value = values_[id];
    if (value.real == kNone && value.codes != kNone)
      value.real = builder_.node(BuiltinOperator::DEQUANTIZE, options_of(DequantizeOptionsT{}),
                                 {value.codes}, node.name + ".real", builder_.shape(value.codes));
    if (value.real == kNone && models::is<models::Parameter>(node))
      value.real = builder_.constant(node.name, as_operand(id, parameter(node)));
    if (value.real == kNone)
      throw Error(ErrorCode::internal, "node '" + node.name + "' has no value in the LiteRT graph");
    return value.real;
  }

  const at::Tensor& parameter(const models::Node& node) const {
    return student_.parameters.at(node.params.at("value"));
  }

  // With the dimensions of what the operator that reads it computes: in stored order, dimensions no
  // longer line up from the last one.
  formats::Array as_operand(NodeId id, const at::Tensor& value) const {
    NodeId user = plan_.consumers[id].at(0);
    while (quant::activation_quantizer(graph_[user])) user = plan_.consumers[user].at(0);
    return as_stored(models::to_array(value.detach().contiguous()), shapes_[user].size());
  }

  // Quantizers that repeat a grid after an operator that moves values share its shift.
  Grid grid(NodeId id) {
    const quant::ActivationQuantizer& op = *calibrated_quantizer(student_, id);
    const auto [scale, zero_point] = activation_grid(student_, op);
    const auto found = shifts_.find(op.scale_name());
    const Grid result = found == shifts_.end()
                            ? choose_grid(scale, zero_point, bounds_[id])
                            : shifted_grid(scale, zero_point, bounds_[id], found->second);
    shifts_[op.scale_name()] = result.shift;
    refuse(graph_[id].name, why_not_int8(result));
    return result;
  }

  TensorId quantize(NodeId id) {
    const NodeId before = graph_[id].inputs[0];
    const Grid to = grid(id);
    const std::string& name = graph_[id].name;
    if (const TensorId codes = values_[before].codes; codes != kNone)
      return on_grid(codes, to, name);
    if (models::is<models::Parameter>(graph_[before])) return quantized_constant(before, id, to);
    const TensorId x = real(before);
    const TensorId codes = builder_.node(BuiltinOperator::QUANTIZE, options_of(QuantizeOptionsT{}),
                                         {x}, name, builder_.shape(x), to.kind());
    return limit(builder_, codes, to, false, name);
  }

  // Codes of another quantizer, or of an operator that keeps its input's grid.
  TensorId on_grid(TensorId codes, const Grid& to, const std::string& name) {
    const Kind kind = to.kind();
    const bool same = builder_.kind(codes).scale == kind.scale &&
                      builder_.kind(codes).zero_point == kind.zero_point;
    return same ? limit(builder_, codes, to, false, name) : requantize(builder_, codes, to, name);
  }

  TensorId quantized_constant(NodeId constant, NodeId quantizer, const Grid& to) {
    const auto& op = *calibrated_quantizer(student_, quantizer);
    const at::Tensor values = op.forward({parameter(graph_[constant])}, student_.parameters);
    const at::Tensor codes = (values.detach() / to.scale).round() + to.zero_point;
    return builder_.constant(graph_[quantizer].name, as_operand(constant, codes.to(at::kChar)),
                             to.kind());
  }

  // The quantizer that alone reads what the node computes, so that the node can give codes.
  NodeId quantizer_after(NodeId id) const {
    const NodeId last = plan_.last_absorbed(graph_, id);
    if (last == graph_.output || plan_.consumers[last].size() != 1) return kNone;
    const NodeId user = plan_.consumers[last][0];
    return calibrated_quantizer(student_, user) ? user : kNone;
  }

  // Writes the node as an operator on codes where it can be one.
  bool in_integers(NodeId id) {
    const models::Node& node = graph_[id];
    const auto& rules = quant::target_rules(Target::tflite);
    const NodeId quantizer = quantizer_after(id);
    const bool is_layer = models::is<models::Conv2d>(node) || models::is<models::Linear>(node);
    if (rules.of(node).execution == quant::Execution::floating || quantizer == kNone) return false;
    if (is_layer ? runs_in_float_.at(node.name) : !all_inputs_are_codes(node)) return false;
    if (models::is<models::HardSigmoid>(node) && !plan_.saturates[id]) return false;
    const Grid to = grid(quantizer);
    std::optional<TensorId> codes;
    if (is_layer) {
      codes = layer_on_codes(id, to);
    } else if (quant::is_pass_through(rules, node)) {
      codes = on_grid(shape_op(builder_, node, codes_of(node.inputs[0]), shapes_[id]), to,
                      graph_[quantizer].name);
    } else {
      std::vector<TensorId> inputs;
      for (const NodeId input : node.inputs) inputs.push_back(codes_of(input));
      const auto scale = node.params.find("scale");
      codes = integer_op(
          builder_, {node, inputs, shapes_[id], to,
                     scale == node.params.end() ? at::Tensor()
                                                : student_.parameters.at(scale->second).flatten()});
    }
    if (!codes) return false;
    values_[quantizer].codes = *codes;
    return true;
  }

  bool all_inputs_are_codes(const models::Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](NodeId input) { return codes_of(input) != kNone; });
  }

  TensorId codes_of(NodeId id) const { return values_[id].codes; }

  TensorId layer_on_codes(NodeId id, const Grid& to) {
    const models::Node& node = graph_[id];
    const quant::IntegerWeights integers = quant::integer_weights(student_, *plan_.site[id]);
    return integer_layer(builder_, {node, codes_of(node.inputs[0]), shapes_[id], to},
                         layer_codes(integers, input_codes(student_, node, false), false));
  }

  TensorId in_float(NodeId id) {
    const models::Node& node = graph_[id];
    if (models::is<models::Conv2d>(node) || models::is<models::Linear>(node))
      return layer_in_float(id);
    std::vector<TensorId> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(real(input));
    if (quant::is_pass_through(quant::target_rules(Target::tflite), node))
      return shape_op(builder_, node, inputs[0], shapes_[id]);
    return float_op(builder_, node, student_.parameters, inputs, shapes_[id]);
  }

  TensorId layer_in_float(NodeId id) {
    const models::Node& node = graph_[id];
    const Layer layer{node, real(node.inputs[0]), shapes_[id], std::nullopt};
    if (!plan_.site[id]) {
      const auto [weight, bias] = exporters::float_layer(student_, node);
      return float_layer(builder_, layer, weight, bias);
    }
    const quant::IntegerWeights integers = quant::integer_weights(student_, *plan_.site[id]);
    return float_layer(builder_, layer, quant::values_of(integers), integers.bias);
  }

  std::map<std::string, bool> runs_in_float_;   // by layer
  std::map<std::string, std::int64_t> shifts_;  // by the name of the quantizer's scale
  Builder builder_;
};

}  // namespace
}  // namespace tflite

ExportReport export_tflite(const quant::Student& student, const std::filesystem::path& path,
                           const Metadata& metadata, const ExportOptions&) {
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const Plan plan = make_plan(student, sites);
  tflite::Converter(student, plan).run(path, metadata);
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), plan.layers};
}

}  // namespace zsq::exporters
