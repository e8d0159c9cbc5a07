// SPDX-License-Identifier: Apache-2.0
#include "quant/placement.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest_name.h"
#include "models/batch_norm_chain.h"

namespace zsq::quant {
using models::Graph;
using models::NodeId;

bool is_float_island(const models::Node& node) {
  return models::is<models::LayerNorm>(node) || models::is<models::Gelu>(node) ||
         models::is<models::Elementwise>(node) || models::is<models::PRelu>(node) ||
         models::is<models::Binary>(node) || models::is<models::MatMul>(node) ||
         models::is<models::Reduce>(node) || models::is<models::Interpolate>(node) ||
         models::is<models::Softmax>(node);
}

namespace {

bool reads_floats(const Graph& graph, const std::vector<bool>& floats, const models::Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
    return floats[input] || models::is<models::Parameter>(graph[input]);
  });
}

bool feeds_islands(const Graph& graph, const std::vector<NodeId>& readers) {
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
    return is_float_island(graph[reader]);
  });
}

}  // namespace

std::vector<bool> float_parts(const Graph& graph, const TargetRules& rules) {
  std::vector<bool> floats(graph.nodes.size());
  const auto readers = graph.consumers();
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const auto& node = graph.nodes[i];
    const bool averages = models::is<models::GlobalAvgPool>(node);
    const bool joins = models::is<models::Add>(node) || models::is<models::Mul>(node) || averages ||
                       is_pass_through(rules, node);
    floats[i] = is_float_island(node) || (joins && reads_floats(graph, floats, node)) ||
                (averages && feeds_islands(graph, readers[i]));
  }
  return floats;
}

Ends find_ends(const Graph& graph) {
  const std::size_t n = graph.nodes.size();
  std::vector<bool> behind(n);
  std::vector<int> before(n);  // layers on the longest way to a node, at most 2
  for (std::size_t i = 0; i < n; ++i)
    for (NodeId input : graph.nodes[i].inputs)
      before[i] = std::max(before[i], std::min(2, before[input] + is_layer(graph[input])));
  for (std::size_t i = n; i-- > 0;)
    for (NodeId input : graph.nodes[i].inputs)
      if (behind[i] || is_layer(graph.nodes[i])) behind[input] = true;
  behind.flip();
  Ends ends{std::vector<bool>(n), std::vector<bool>(n), std::move(behind)};
  for (std::size_t i = 0; i < n; ++i) {
    ends.first[i] = before[i] == 0;
    ends.second[i] = before[i] == 1;
  }
  return ends;
}

namespace {

// Index = NodeId: bits that the options give this layer by its name; 0: none.
std::vector<std::int64_t> named_bits(const Graph& graph, const std::vector<LayerBits>& named,
                                     const char* key) {
  std::vector<std::string> known;
  for (const auto& node : graph.nodes)
    if (is_layer(node)) known.push_back(node.name);
  std::vector<std::int64_t> bits(graph.nodes.size());
  for (const LayerBits& layer : named) {
    if (std::find(known.begin(), known.end(), layer.layer) == known.end())
      throw Error(ErrorCode::usage, std::string(key) + ": " +
                                        unknown_name_message("layer of this network with weights",
                                                             layer.layer, known));
    bits[static_cast<std::size_t>(graph.id_of(layer.layer))] = layer.bits;
  }
  return bits;
}

std::vector<std::int64_t> named_weights(const Graph& graph, const QuantOptions& options) {
  return named_bits(graph, options.weights.layer_bits, "quantize.weights.layer_bits");
}

// Outputs with places, several, or values after linear layers: what follows the last layers
// decodes boxes, resizes maps or joins unlike quantities, which no grid of 256 codes holds
// together. (A convolution would run in float where no code follows it.)
bool has_tail(const Graph& graph, const Ends& ends) {
  const auto& kind = graph.signature.kind;
  if (!kind.outputs().empty()) return true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (ends.last[i] && models::is<models::Conv2d>(graph.nodes[i])) return false;
  return kind == models::OutputKind::values;
}

class DeployPlacer {
 public:
  DeployPlacer(const Graph& graph, const QuantOptions& options)
      : graph_(graph),
        options_(options),
        rules_(target_rules(options.target)),
        ends_(find_ends(graph)),
        has_tail_(has_tail(graph, ends_)),
        weights_(named_weights(graph, options)),
        inputs_(
            named_bits(graph, options.activations.layer_bits, "quantize.activations.layer_bits")),
        consumers_(graph.consumers()),
        floats_(float_parts(graph, rules_)) {}

  Placement place() const {
    Placement placement;
    const std::size_t n = graph_.nodes.size();
    placement.bits.resize(n);
    placement.input_bits.resize(n);
    placement.weight_bits.resize(n);
    for (std::size_t i = n; i-- > 0;) {
      const auto id = static_cast<NodeId>(i);
      placement.input_bits[i] = input_bits(id);
      if (is_layer(graph_[id])) placement.weight_bits[i] = weight_bits(id);
      for (NodeId consumer : consumers_[i]) add_needs(id, consumer, placement);
    }
    auto& image = placement.bits[graph_.input];
    if (!image.empty()) {
      image.erase(image.begin(), image.upper_bound(options_.image_bits));
      image.insert(options_.image_bits);
    }
    return placement;
  }

 private:
  std::int64_t end_bits() const {
    return options_.first_last_bits ? options_.first_last_bits : options_.activations.num_bits;
  }

  std::int64_t weight_bits(NodeId layer) const {
    if (weights_[layer]) return weights_[layer];
    const bool end = (ends_.first[layer] || ends_.last[layer]) && options_.first_last_bits;
    return end ? options_.first_last_bits : options_.weights.num_bits;
  }

  std::int64_t input_bits(NodeId id) const {
    const auto& node = graph_[id];
    if (!node.inputs.empty() && has_tail_ && ends_.last[id] && !is_layer(node)) return kFloatInput;
    if (is_pass_through(rules_, node) || node.inputs.empty()) return 0;
    if (!is_layer(node))
      return rules_.layers_alone || reads_floats(graph_, floats_, node) ? kFloatInput
                                                                        : options_.add_bits;
    if (inputs_[id]) return inputs_[id];
    if (ends_.first[id]) return options_.image_bits;
    if (ends_.second[id] && options_.second_input_bits) return options_.second_input_bits;
    return ends_.last[id] ? end_bits() : options_.activations.num_bits;
  }

  // The consumer becomes one with `id` when integers run, so nothing is quantized between them.
  bool absorbs(NodeId id, NodeId consumer) const {
    if (consumers_[id].size() != 1) return false;
    const auto& node = graph_[id];
    if (is_layer(node) && models::following_batch_norm(graph_, consumers_, id) == consumer)
      return true;
    // A pass-through operator keeps the grid of the tensor before it, so it cannot take up a clip;
    // nor can the image.
    return models::is<models::Clip>(graph_[consumer]) && !is_pass_through(rules_, node) &&
           !node.inputs.empty();
  }

  void add_needs(NodeId id, NodeId consumer, Placement& placement) const {
    const auto& node = graph_[consumer];
    if (is_layer(node) && node.inputs[0] != id) return;  // its weight
    if (absorbs(id, consumer)) return;
    const bool stays_float = floats_[id] || models::is<models::Parameter>(graph_[id]);
    if (stays_float && floats_[consumer] && !is_pass_through(rules_, node)) return;
    if (is_pass_through(rules_, node)) {
      const auto& behind = placement.bits[consumer];
      if (!behind.empty()) placement.bits[id].insert(*behind.begin());
    } else if (placement.input_bits[consumer] != kFloatInput) {
      placement.bits[id].insert(placement.input_bits[consumer]);
    }
  }

  const Graph& graph_;
  const QuantOptions& options_;
  const TargetRules& rules_;
  Ends ends_;
  bool has_tail_;
  std::vector<std::int64_t> weights_, inputs_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> floats_;
};

Placement place_paper(const Graph& graph, const QuantOptions& options) {
  const std::size_t n = graph.nodes.size();
  Placement placement;
  placement.bits.resize(n);
  placement.input_bits.resize(n);
  placement.weight_bits = named_weights(graph, options);
  for (std::size_t i = 0; i < n; ++i) {
    const auto* clip = models::get_if<models::Clip>(graph.nodes[i]);
    if (clip && clip->lo == 0) placement.bits[i].insert(options.activations.num_bits);
    if (is_layer(graph.nodes[i]) && placement.weight_bits[i] == 0)
      placement.weight_bits[i] = options.weights.num_bits;
  }
  return placement;
}

}  // namespace

Placement place(const Graph& graph, const QuantOptions& options) {
  return options.mode == Mode::paper ? place_paper(graph, options)
                                     : DeployPlacer(graph, options).place();
}

}  // namespace zsq::quant
