// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros_like.h>

#include "core/error.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/choose_levels.h"
#include "quant/pair_bound.h"
#include "quant/placement.h"
#include "quant/rounding/registry.h"
#include "quant/split_hard_swish.h"
#include "quant/student.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

// Copies the float graph node by node and puts quantizers where `placement` says.
class Inserter {
 public:
  Inserter(const models::Model& teacher, const QuantOptions& options)
      : teacher_(teacher.graph),
        teacher_parameters_(teacher.parameters),
        placement_(place(teacher.graph, options)),
        views_(teacher.graph.nodes.size()),
        source_(teacher.graph.nodes.size()) {
    student_.options = options;
    student_.parameters = teacher.parameters.clone();
  }

  Student run() && {
    Graph& graph = student_.graph;
    graph.input_shape = teacher_.input_shape;
    graph.signature = teacher_.signature;
    std::vector<NodeId> copies;
    bool any_layer = false;
    for (std::size_t i = 0; i < teacher_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      require_float(teacher_[id]);
      any_layer = any_layer || is_layer(teacher_[id]);
      copies.push_back(copy(id));
      quantize_output(id, copies.back());
    }
    if (!any_layer)
      throw Error(
          ErrorCode::unsupported_model,
          "the network has no convolution and no linear layer, so nothing can be quantized");
    graph.input = copies[teacher_.input];
    graph.output = copies[teacher_.output];
    return std::move(student_);
  }

 private:
  static void require_float(const Node& node) {
    if (models::is<models::Custom>(node))
      throw Error(
          ErrorCode::unsupported_model,
          "node '" + node.name + "' is a " + models::op_name(node.op) +
              "; quantizers are inserted into float networks only: give the network as it was "
              "before quantization");
  }

  NodeId copy(NodeId id) {
    Node node = teacher_[id];
    for (NodeId& input : node.inputs) input = view(input, placement_.input_bits[id]);
    if (is_layer(node)) quantize_weight(node, placement_.weight_bits[id]);
    if (auto* clip = std::get_if<models::Clip>(&node.op)) give_one_bound(node, *clip);
    return student_.graph.add(std::move(node));
  }

  // The quantizer that reads the tensor ends at or below the lowest upper bound, and rounds the
  // lower ones to 0 (rewrites/equalize.h, rewrites/split_channels.h).
  void give_one_bound(Node& node, models::Clip& clip) const {
    const auto upper = node.params.extract("upper");
    if (upper) clip.hi = teacher_parameters_.at(upper.mapped()).min().item<float>();
    node.params.erase("lower");
  }

  // The tensor of `id` at `bits`, or the widest there is.
  NodeId view(NodeId id, std::int64_t bits) const {
    const auto found = views_[id].find(bits);
    return found == views_[id].end() ? views_[id].at(0) : found->second;
  }

  void quantize_weight(Node& layer, std::int64_t bits) {
    NodeId latent;
    if (layer.inputs.size() == 1) {
      auto weight = layer.params.extract("weight");
      latent = student_.graph.add(
          {layer.name + ".weight", models::Parameter{}, {}, {{"value", weight.mapped()}}});
    } else {
      latent = layer.inputs[1];
      if (!models::is<models::Parameter>(student_.graph[latent]))
        throw Error(ErrorCode::unsupported_model,
                    "the weight of layer '" + layer.name + "' is computed by node '" +
                        student_.graph[latent].name + "'; only stored weights can be quantized");
      layer.inputs.pop_back();
    }
    layer.inputs.push_back(
        student_.graph.add({layer.name + ".weight_quantizer",
                            models::Custom{weight_quantizer(layer, latent, bits)},
                            {latent}}));
  }

  // Layers that share a weight and its bound share its quantizer.
  std::shared_ptr<const WeightQuantizer> weight_quantizer(const Node& layer, NodeId latent,
                                                          std::int64_t bits) {
    const std::string& name = student_.graph[latent].params.at("value");
    const auto& o = student_.options;
    const std::int64_t bound =
        may_saturate() ? pair_bound_of_layer(layer, student_.parameters.at(name),
                                             activation_quantizer(student_.graph[layer.inputs[0]]))
                       : 0;
    auto& quantizer = weight_quantizers_[{name, bits, bound}];
    if (quantizer) return quantizer;
    const bool tables = !o.weights.level_tables.empty() && (bits == 3 || bits == 4);
    auto op = std::make_shared<WeightQuantizer>(
        layer.name + ".weight_quantizer",
        tables ? level_table_spec(bits, o.mode) : bounded_spec(bits, bound), o.weights.per_channel,
        o.weights.range_every_step);
    if (tables) return quantizer = with_levels(std::move(op), student_.parameters.at(name));
    const auto rule = op->range_every_step() ? WeightRange::min_max : o.weights.range;
    auto grid = weight_grid(student_.parameters.at(name), op->spec(), op->per_channel(), rule);
    student_.parameters.set(op->scale_name(), std::move(grid.scale));
    student_.parameters.set(op->zero_point_name(), std::move(grid.zero_point));
    return quantizer = std::move(op);
  }

  bool may_saturate() const {
    const auto& o = student_.options;
    return o.mode == Mode::deploy && o.weights.saturation != Saturation::allow &&
           target_rules(o.target).weights.saturating_pairs;
  }

  // Level tables are within any bound (quant/level_table.h). Weights of 8 bits with zero points
  // are stored unsigned, so that their products do not saturate.
  QuantizerSpec bounded_spec(std::int64_t bits, std::int64_t bound) const {
    const auto& o = student_.options;
    QuantizerSpec spec = weight_spec(bits, symmetric_weights(o, bits), o.mode);
    const std::int64_t largest = spec.symmetric ? -spec.qmin : spec.qmax - spec.qmin;
    if (bound == 0 || 2 * largest <= bound || largest > 128) return spec;
    if (o.weights.saturation == Saturation::halve && spec.symmetric) {
      spec.qmin = -bound / 2;
      spec.qmax = bound / 2;
    } else {
      spec.pair_bound = bound;
    }
    return spec;
  }

  std::shared_ptr<const WeightQuantizer> with_levels(std::shared_ptr<const WeightQuantizer> op,
                                                     const at::Tensor& weight) {
    const WeightOptions& options = student_.options.weights;
    auto grids = choose_levels(weight.detach().flatten(1), op->spec().num_bits,
                               options.level_tables, options.level_choice);
    student_.parameters.set(op->zero_point_name(), at::zeros_like(grids.scale));
    student_.parameters.set(op->scale_name(), std::move(grids.scale));
    student_.parameters.set(op->levels_name(), std::move(grids.levels));
    return op;
  }

  void quantize_output(NodeId id, NodeId tensor) {
    views_[id] = {{0, tensor}, {kFloatInput, tensor}};
    const auto& bits = placement_.bits[id];
    if (bits.empty()) return;
    const std::string name = teacher_[id].name + ".quantizer";
    // After a pass-through operator the tensor lies on the grid of the quantizer before it: the
    // same one again.
    auto op = carried_quantizer(id);
    if (!op) op = make_quantizer(name, *bits.begin());
    source_[id] = op;
    tensor = student_.graph.add({name, models::Custom{op}, {tensor}});
    views_[id][0] = views_[id][op->spec().num_bits] = tensor;
    for (std::int64_t b : bits) {
      if (b >= op->spec().num_bits) continue;
      const std::string narrow = name + std::to_string(b);
      tensor = student_.graph.add({narrow, models::Custom{make_quantizer(narrow, b)}, {tensor}});
      views_[id][b] = tensor;
    }
  }

  std::shared_ptr<const ActivationQuantizer> carried_quantizer(NodeId id) const {
    const auto& options = student_.options;
    const bool pass_through =
        options.mode == Mode::deploy && is_pass_through(target_rules(options.target), teacher_[id]);
    return pass_through ? source_[teacher_[id].inputs[0]] : nullptr;
  }

  std::shared_ptr<const ActivationQuantizer> make_quantizer(const std::string& name,
                                                            std::int64_t bits) const {
    const auto& options = student_.options;
    auto spec = activation_spec(bits, options.mode, symmetric_activations(options, bits));
    if (spec.symmetric && bits == 8 && target_rules(options.target).activations.without_lowest)
      ++spec.qmin;
    return std::make_shared<ActivationQuantizer>(name, spec);
  }

  const Graph& teacher_;
  const models::ParameterStore& teacher_parameters_;
  Placement placement_;
  Student student_;
  std::vector<std::map<std::int64_t, NodeId>>
      views_;  // bits -> node of the student; 0: the widest; kFloatInput
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>,
           std::shared_ptr<const WeightQuantizer>>
      weight_quantizers_;  // by parameter, bits and pair bound
  std::vector<std::shared_ptr<const ActivationQuantizer>> source_;  // the first one after a node
};

}  // namespace

Student insert_quantizers(models::Model model, const QuantOptions& options) {
  if (options.mode == Mode::deploy && target_rules(options.target).hard_swish_is_product)
    model.graph = split_hard_swish(model.graph);
  Student student = Inserter(model, options).run();
  if (const auto round = rounding_method(options.weights.rounding).round) round(student);
  if (options.bias_correction == BiasCorrection::bn_statistics) correct_bias(student, model);
  return student;
}

}  // namespace zsq::quant
