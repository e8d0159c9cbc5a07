// SPDX-License-Identifier: Apache-2.0
#include "exporters/qdq_model.h"

#include <algorithm>

#include "core/error.h"
#include "exporters/activation_codes.h"
#include "exporters/depth_to_space.h"
#include "exporters/file_outputs.h"
#include "exporters/float_ops.h"
#include "exporters/node_writer.h"
#include "exporters/open_forms.h"
#include "exporters/scaled_gate.h"
#include "models/execute.h"
#include "models/load.h"

namespace zsq::exporters {
namespace {

using models::NodeId;

class Converter : NodeWriter<std::string> {
 public:
  Converter(const quant::Student& student, const Plan& plan, const QdqForm& form,
            const ExportOptions& options)
      : NodeWriter(student, plan), form_(form), options_(options) {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const auto found = depth_to_space(student, plan, id);
      if (!found) continue;
      spread_.emplace(id, *found);
      for (const NodeId inside : found->inside) written_with_another_[inside] = true;
    }
    for (const auto& [id, found] : spread_) signature_.open_forms.erase(graph_[id].name);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (written_with_another_[i]) signature_.open_forms.erase(graph_.nodes[i].name);
    close_unless_all_follow(signature_);
  }

  formats::onnx::Model run() && {
    for (const FileOutput& output : outputs_) builder_.unique(output.name);
    if (signature_.tail) reserve_names(builder_, *signature_.tail);
    input_ = builder_.unique(signature_.input);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (!written_with_another_[i] && !joins_outputs(graph_, static_cast<NodeId>(i)))
        write(static_cast<NodeId>(i));
    require_nothing_refused();
    formats::onnx::Graph& graph = builder_.model().graph;
    graph.name = "zsq";
    graph.inputs = {describe_input(signature_, input_, shapes_[graph_.input])};
    if (signature_.open_height || signature_.open_width)
      builder_.model().metadata[models::kImageSizeKey] = size_in_words(shapes_[graph_.input]);
    if (signature_.open_channels)
      builder_.model().metadata[models::kChannelsKey] = std::to_string(shapes_[graph_.input].at(1));
    for (const FileOutput& output : outputs_) {
      write_output(builder_, value(output.node), shapes_[output.node], output);
      graph.outputs.push_back(describe_output(signature_, output, shapes_[output.node]));
    }
    if (signature_.tail) write_tail(builder_, signature_);
    return std::move(builder_.model());
  }

 private:
  std::string input() override { return enters_as_codes() ? input_ : as_map(input_); }

  std::string as_map(const std::string& x) {
    return from_file_layout(builder_, signature_, x, shapes_[graph_.input]);
  }

  // OpenVINO rounds what is reshaped to bf16 on processors that have it, unless it is codes.
  bool enters_as_codes() const {
    const auto& users = plan_.consumers[graph_.input];
    return signature_.one_dimensional && users.size() == 1 &&
           calibrated_quantizer(student_, users[0]);
  }

  std::string operation(NodeId id) override {
    if (plan_.saturates[id]) return saturating_sum(id);
    const models::Node& node = graph_[id];
    if (const auto found = spread_.find(id); found != spread_.end())
      return builder_.node("DepthToSpace", {value(found->second.input)}, node.name,
                           {{"blocksize", found->second.block}, {"mode", found->second.mode}});
    if (const auto open = signature_.open_forms.find(node.name);
        open != signature_.open_forms.end())
      return follow_size(id, open->second);
    OnnxBuilder::Values inputs;
    for (const NodeId input : node.inputs) inputs.push_back(value(input));
    if (is_larger_of_products(node)) return larger_of_products(node, inputs[0]);
    std::string result = add_float_op(builder_, node, student_.parameters, inputs,
                                      shapes_[node.inputs[0]], requantized_pads(node));
    const auto* pool = models::get_if<models::GlobalAvgPool>(node);
    if (!pool || pool->keepdims) return result;
    pooled_[id] = result;
    return {};
  }

  std::string follow_size(NodeId id, const models::OpenForm& form) {
    models::Node node = graph_[id];
    node.op = form.op;
    const NodeId x = node.inputs[0];
    const auto* resize = std::get_if<models::Interpolate>(&form.op);
    if (!resize)
      return add_float_op(builder_, node, student_.parameters, {value(x)}, shapes_[x], {});
    return write_resized(builder_,
                         {node, *resize, value(x), shaped_as(x),
                          form.size_of.empty() ? "" : shaped_as(graph_.id_of(form.size_of))});
  }

  std::string shaped_as(NodeId id) { return value(with_shape_of(plan_, codes_, id)); }

  // PRelu as max(x, slope x), which is the same up to a slope of 1: onnxruntime 1.31.1 takes three
  // to seven times as long for its own operator.
  bool is_larger_of_products(const models::Node& node) const {
    return models::is<models::PRelu>(node) && student_.options.target == Target::onnxruntime &&
           student_.parameters.at(node.params.at("slope")).max().item<float>() <= 1;
  }

  std::string larger_of_products(const models::Node& node, const std::string& x) {
    const std::string slope = parameter(node.name + ".slope", node.params.at("slope"));
    const std::string product = builder_.node("Mul", {x, slope}, node.name + ".product");
    return builder_.node("Max", {x, product}, node.name);
  }

  // OpenVINO 2026.4.1 pads the codes of an average pool that counts its pads with 0 instead of the
  // zero point, and makes such a pool of a Pad before one, unless codes are between them.
  Requantize requantized_pads(const models::Node& node) {
    const auto* pool = models::get_if<models::AvgPool>(node);
    if (!pool || !pool->count_include_pad || pool->pads == models::Pads{}) return {};
    const auto* quantizer = calibrated_quantizer(student_, node.inputs[0]);
    if (!quantizer || activation_grid(student_, *quantizer).zero_point == 0) return {};
    return [this, &node](const std::string& padded) {
      const CodeTensor& grid = codes_.at(node.inputs[0]);
      const std::string codes =
          builder_.node("QuantizeLinear", {padded, grid.scale, grid.zero_point}, padded + ".codes");
      return builder_.node("DequantizeLinear", {codes, grid.scale, grid.zero_point},
                           padded + ".values");
    };
  }

  // The value of a node that comes earlier. A parameter becomes an initialiser, and a pool without
  // its two dimensions gets its Flatten, when it is asked for.
  std::string value(NodeId id) override {
    const models::Node& node = graph_[id];
    if (values_[id].empty() && models::is<models::Parameter>(node))
      values_[id] = parameter(builder_.unique(node.name), node.params.at("value"));
    if (const auto pooled = pooled_.find(id); values_[id].empty() && pooled != pooled_.end())
      values_[id] = builder_.node("Flatten", {pooled->second}, node.name);
    if (values_[id].empty())
      throw Error(ErrorCode::internal, "node '" + node.name + "' has no value in the ONNX graph");
    return values_[id];
  }

  std::string parameter(const std::string& name, const std::string& stored) {
    return builder_.constant(name, models::to_array(student_.parameters.at(stored).detach()));
  }

  std::string quantizer(NodeId id, const quant::ActivationQuantizer&) override {
    const NodeId before = graph_[id].inputs[0];
    const auto pooled = pooled_.find(before);
    if (form_.sums_codes() && calibrated_quantizer(student_, before))
      return quantize_value(id, requantized(id));
    if (before == graph_.input && enters_as_codes())
      return quantize_value(id, as_map(quantize_value(id, input_)));
    if (pooled == pooled_.end()) return quantize_value(id, value(before));
    // The pool runs in integers only where a quantizer is right after it, so one more comes
    // between the pool and the Flatten; it changes no value.
    const std::string on_grid = quantize_value(id, pooled->second);
    bounds_[id].reached_below = bounds_[id].reached_above = false;
    return quantize_value(id, builder_.node("Flatten", {on_grid}, graph_[id].name));
  }

  std::string quantize_value(NodeId id, const std::string& x) {
    const ActivationCodes activation = activation_codes(student_, plan_, id, bounds_[id]);
    refuse(graph_[id].name, form_.refusal(activation));
    const CodeTensor& tensor = codes_[id] = form_.quantize(builder_, x, activation);
    // Sums that read the codes alone: onnxruntime would compute a value that nothing uses.
    const auto& users = plan_.consumers[id];
    if (!users.empty() &&
        std::all_of(users.begin(), users.end(), [&](NodeId user) { return plan_.saturates[user]; }))
      return tensor.codes;
    return builder_.node("DequantizeLinear", {tensor.codes, tensor.scale, tensor.zero_point},
                         graph_[id].name);
  }

  // A constant as one operand of a sum that is to run on codes.
  std::string addend(const std::string& name, std::uint8_t code, float scale) {
    return builder_.node(
        "DequantizeLinear",
        {builder_.scalar(name + ".codes", code), builder_.scalar(name + ".scale", scale),
         builder_.scalar("code_0", std::uint8_t{0})},
        name);
  }

  // From one grid to another there is no operator on codes; a sum with 0 is three times as fast as
  // the way through float.
  std::string requantized(NodeId id) {
    return builder_.node("Add", {value(graph_[id].inputs[0]), addend("zero", 0, 1)},
                         graph_[id].name + ".same");
  }

  // alpha x is the codes of x, read at alpha times their scale.
  std::string saturating_sum(NodeId id) {
    const auto& op = *models::get_if<models::HardSigmoid>(graph_[id]);
    const NodeId x = graph_[id].inputs[0];
    const float input_scale = activation_grid(student_, *calibrated_quantizer(student_, x)).scale;
    const std::string& name = graph_[id].name;
    if (graph_[id].params.contains("scale"))
      return scaled_gate(builder_, graph_[id], student_.parameters, value(x), input_scale);
    const std::string scale =
        builder_.scalar(name + ".scale", input_scale * static_cast<float>(op.alpha));
    const std::string scaled = builder_.node(
        "DequantizeLinear", {codes_.at(x).codes, scale, codes_.at(x).zero_point}, name + ".scaled");
    return builder_.node("Add", {scaled, addend(name + ".beta", 1, static_cast<float>(op.beta))},
                         name);
  }

  std::string layer(NodeId id) override {
    const models::Node& node = graph_[id];
    const std::string x = value(node.inputs[0]);
    OnnxBuilder::Values inputs =
        plan_.site[id] ? quantized_weight(id, *plan_.site[id]) : float_weight(node);
    inputs.insert(inputs.begin(), x);
    if (const auto* conv = models::get_if<models::Conv2d>(node))
      return builder_.node("Conv", inputs, node.name, conv_attributes(*conv, weight_shape(node)));
    const OnnxBuilder::Attributes transposed{{"transB", std::int64_t{1}}};
    const models::Shape& shape = shapes_[id];
    if (shape.size() == 2) return builder_.node("Gemm", inputs, node.name, transposed);
    inputs[0] = as_matrix(node.inputs[0], x);
    const std::string y = builder_.node("Gemm", inputs, node.name + ".matrix", transposed);
    if (signature_.open_height || signature_.open_width)
      return as_tokens(builder_, node.name, y, shaped_as(node.inputs[0]), shape.back());
    std::vector<std::int64_t> wide{-1};
    wide.insert(wide.end(), shape.begin() + 1, shape.end());
    return builder_.node("Reshape", {y, builder_.integers(node.name + ".shape", wide)}, node.name);
  }

  // Tokens [N, ..., features] as [tokens, features]; codes where there are some, for a Gemm in
  // integers has a DequantizeLinear right before it.
  std::string as_matrix(NodeId id, const std::string& x) {
    const std::string& name = graph_[id].name;
    const std::string shape = builder_.integers(name + ".as_matrix", {-1, shapes_[id].back()});
    const auto found = codes_.find(id);
    if (found == codes_.end()) return builder_.node("Reshape", {x, shape}, name + ".matrix");
    const auto& [codes, scale, zero_point] = found->second;
    const std::string matrix = builder_.node("Reshape", {codes, shape}, name + ".matrix.codes");
    return builder_.node("DequantizeLinear", {matrix, scale, zero_point}, name + ".matrix");
  }

  std::vector<std::int64_t> weight_shape(const models::Node& node) const {
    return node.inputs.size() > 1 ? shapes_[static_cast<std::size_t>(node.inputs[1])]
                                  : student_.parameters.at(node.params.at("weight")).sizes().vec();
  }

  OnnxBuilder::Values float_weight(const models::Node& node) {
    OnnxBuilder::Values values;
    values.push_back(node.inputs.size() > 1
                         ? value(node.inputs[1])
                         : parameter(node.name + ".weight", node.params.at("weight")));
    if (const auto bias = node.params.find("bias"); bias != node.params.end())
      values.push_back(parameter(node.name + ".bias", bias->second));
    return values;
  }

  OnnxBuilder::Values quantized_weight(NodeId id, const quant::WeightSite& site) {
    const models::Node& node = graph_[id];
    const quant::IntegerWeights integers = quant::integer_weights(student_, site);
    LayerCodes codes =
        layer_codes(integers, input_codes(student_, node, form_.saturates()), options_.packed);
    const WeightCodes weight{node.name + ".weight", site.op->spec(), integers, codes};
    refuse(node.name, form_.refusal(weight));
    OnnxBuilder::Values values{form_.weight(builder_, weight)};
    if (codes.bias) values.push_back(form_.bias(builder_, weight, node.name + ".bias"));
    return values;
  }

  const QdqForm& form_;
  const ExportOptions& options_;
  models::Signature signature_ = graph_.signature;
  const std::vector<FileOutput> outputs_ = file_outputs(graph_);
  std::string input_;                      // the file's input
  std::map<NodeId, DepthToSpace> spread_;  // by the last node of each
  std::vector<bool> written_with_another_ = std::vector<bool>(graph_.nodes.size());
  std::map<NodeId, CodeTensor> codes_;    // of a quantizer
  std::map<NodeId, std::string> pooled_;  // [N, C, 1, 1] of a pool that drops the last two
  OnnxBuilder builder_{13};
};

}  // namespace

formats::onnx::Model qdq_model(const quant::Student& student, const Plan& plan, const QdqForm& form,
                               const ExportOptions& options) {
  return Converter(student, plan, form, options).run();
}

}  // namespace zsq::exporters
