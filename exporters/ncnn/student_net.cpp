// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/student_net.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <optional>
#include <set>

#include "exporters/file_outputs.h"
#include "exporters/ncnn/float_ops.h"
#include "exporters/ncnn/island_ops.h"
#include "exporters/ncnn/layers.h"
#include "exporters/node_writer.h"
#include "exporters/scaled_gate.h"
#include "models/load.h"

namespace zsq::exporters::ncnn {
namespace {

using models::NodeId;

constexpr std::int64_t kMultiply = 2, kDivide = 3;      // of BinaryOp
constexpr std::int64_t kRound = 18;                     // of UnaryOp; halves to even
constexpr std::int64_t kLowest = -127, kHighest = 127;  // codes of ncnn's int8

class Converter : NodeWriter<std::string> {
 public:
  Converter(const quant::Student& student, const Plan& plan) : NodeWriter(student, plan) {}

  Net run() && {
    require_one_row(graph_.signature, "ncnn");
    require_plain_gates(graph_, "ncnn");
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      try {
        write(id);
      } catch (const NoLayer& error) {
        refuse(graph_[id].name, error.what());
        values_[id] = net_.unique(graph_[id].name);
      }
    }
    const models::Signature& signature = graph_.signature;
    std::string output = values_[graph_.output];
    try {
      if (refused_.empty()) output = add_file_output(net_, signature, output);
    } catch (const NoLayer& error) {
      refuse(signature.output, error.what());
    }
    require_nothing_refused();
    net_.finish(output, one_word(signature.output));
    return std::move(net_);
  }

 private:
  std::string input() override {
    return net_.add("Input", {}, graph_.signature.input,
                    sizes(without_batch(shapes_[i(graph_.input)])));
  }

  static std::size_t i(NodeId id) { return static_cast<std::size_t>(id); }

  // A parameter becomes a layer when it is asked for.
  std::string value(NodeId id) override {
    const models::Node& node = graph_[id];
    if (values_[id].empty() && models::is<models::Parameter>(node)) {
      const at::Tensor& value = student_.parameters.at(node.params.at("value"));
      const formats::Array array = models::to_array(value.detach());
      Weights weights;
      weights.add(array.as<float>());
      values_[id] = net_.add("MemoryData", {}, node.name, sizes(array.shape), weights);
    }
    if (values_[id].empty())
      throw Error(ErrorCode::internal, "node '" + node.name + "' has no blob");
    return values_[id];
  }

  std::string operation(NodeId id) override {
    const models::Node& node = graph_[id];
    std::vector<std::string> inputs;
    std::vector<models::Shape> input_shapes;
    for (const NodeId input : node.inputs) {
      inputs.push_back(value(input));
      input_shapes.push_back(shapes_[i(input)]);
      // A parameter has no batch.
      if (models::is<models::Parameter>(graph_[input]))
        input_shapes.back().insert(input_shapes.back().begin(), 1);
    }
    return add_float_op(net_, node, student_.parameters, inputs, input_shapes, shapes_[i(id)]);
  }

  // A quantizer after an operator that passes values on has the grid of the one before it, on which
  // the values already are.
  bool repeats(NodeId id) {
    const auto* op = calibrated_quantizer(student_, id);
    return op && !grids_.insert(op->scale_name()).second;
  }

  // What the grid of a quantizer is without its zero point.
  InputGrid grid_of(NodeId quantizer) const {
    const auto [scale, zero_point] =
        activation_grid(student_, *calibrated_quantizer(student_, quantizer));
    const CodeBounds& bounds = bounds_[i(quantizer)];
    return {scale, bounds.lowest - zero_point, bounds.highest - zero_point};
  }

  std::string quantizer(NodeId id, const quant::ActivationQuantizer& op) override {
    if (repeats(id)) return value(graph_[id].inputs[0]);
    const InputGrid grid = grid_of(id);
    const auto& users = plan_.consumers[i(id)];
    const auto by_itself = [&](NodeId user) { return in_int8(user, id); };
    if (users.empty() || std::none_of(users.begin(), users.end(), by_itself))
      return rounded(id, grid, limit(id, grid, false));
    refuse_beyond_int8(id, op, grid);
    const std::string limited = limit(id, grid, true);
    return std::all_of(users.begin(), users.end(), by_itself) ? limited
                                                              : rounded(id, grid, limited);
  }

  void refuse_beyond_int8(NodeId id, const quant::ActivationQuantizer& op, const InputGrid& grid) {
    const CodeBounds& bounds = bounds_[i(id)];
    if (!(bounds.reached_below && grid.least < kLowest) &&
        !(bounds.reached_above && grid.most > kHighest))
      return;
    refuse(graph_[id].name, "its " + std::to_string(op.spec().num_bits) + "-bit codes go from " +
                                std::to_string(grid.least) + " to " + std::to_string(grid.most) +
                                " once the zero point is 0, and ncnn's from -127 to 127");
  }

  // In float, as the student does it: ncnn has no layer that makes floats of int8 codes.
  std::string rounded(NodeId id, const InputGrid& grid, const std::string& x) {
    const std::string& name = graph_[id].name;
    const auto scalar = [&](Settings settings) {
      settings.insert({{1, text(std::int64_t{1})}, {2, text(grid.step)}});
      return settings;
    };
    const std::string steps =
        net_.add("BinaryOp", {x}, name + ".steps", scalar({{0, text(kDivide)}}));
    const std::string whole = net_.add("UnaryOp", {steps}, name + ".codes", {{0, text(kRound)}});
    return net_.add("BinaryOp", {whole}, name, scalar({{0, text(kMultiply)}}));
  }

  // Rounding is monotone, so values are limited before it.
  std::string limit(NodeId id, const InputGrid& grid, bool int8_limits) {
    const std::string x = value(graph_[id].inputs[0]);
    const CodeBounds& bounds = bounds_[i(id)];
    const bool below = bounds.reached_below && !(int8_limits && grid.least <= kLowest);
    const bool above = bounds.reached_above && !(int8_limits && grid.most >= kHighest);
    if (!below && !above) return x;
    const auto bound = [&](std::int64_t code) {
      return text(static_cast<float>(code) * grid.step);
    };
    const std::string name = graph_[id].name + ".limited";
    if (below && !above && grid.least == 0) return net_.add("ReLU", {x}, name);
    Settings settings;
    if (below) settings[0] = bound(grid.least);
    if (above) settings[1] = bound(grid.most);
    return net_.add("Clip", {x}, name, settings);
  }

  // Whether `layer` reads `input` with its own quantizer.
  bool in_int8(NodeId layer, NodeId input) {
    return plan_.site[i(layer)] && graph_[layer].inputs[0] == input &&
           fits_int8(weights_of(layer)) && calibrated_quantizer(student_, input);
  }

  // Computed once, since the quantizer before the layer asks for them, too.
  const LayerWeights& weights_of(NodeId layer) {
    const auto known = weights_.find(layer);
    if (known != weights_.end()) return known->second;
    const auto integers = quant::integer_weights(student_, *plan_.site[i(layer)]);
    const auto input = input_codes(student_, graph_[layer], false);
    return weights_.emplace(layer, layer_weights(integers, input)).first->second;
  }

  std::string layer(NodeId id) override {
    const models::Node& node = graph_[id];
    const NodeId input = node.inputs[0];
    if (models::is<models::Linear>(node) && shapes_[i(input)].size() != 2)
      throw NoLayer("a linear layer on a tensor that is not [N, features]");
    if (!plan_.site[i(id)]) {
      const auto [weight, bias] = float_layer(student_, node);
      return add_float_layer(net_, node, value(input), weight, bias);
    }
    const LayerWeights& weights = weights_of(id);
    if (in_int8(id, input))
      return add_int8_layer(net_, node, value(input), weights, grid_of(input));
    return add_float_layer(net_, node, value(input),
                           weights.codes * quant::per_channel(weights.scale, weights.codes),
                           weights.bias);
  }

  std::set<std::string> grids_;  // scales of the quantizers so far
  std::map<NodeId, LayerWeights> weights_;
  Net net_;
};

}  // namespace

Net student_net(const quant::Student& student, const Plan& plan) {
  return Converter(student, plan).run();
}

}  // namespace zsq::exporters::ncnn
