// SPDX-License-Identifier: Apache-2.0
#include "quant/bit_allocation/sensitivity.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/stopwatch.h"
#include "losses/divergence.h"
#include "models/batch_norm_chain.h"
#include "models/execute.h"
#include "models/load.h"
#include "models/stored_tensor.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/dependent_part.h"
#include "quant/placement.h"
#include "quant/rounding/round_layers.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

constexpr std::int64_t kBatch = 16;  // the inputs of all layers are kept for one batch

// No node of a network is called so.
std::string own_name(const std::string& name) { return "zsq sensitivity: " + name; }

// What quantization at some number of bits makes of one layer. Undefined tensors: nothing.
struct Change {
  at::Tensor weight, bias, beta;
  std::shared_ptr<const models::CustomOp> quantizer;  // of the input
  std::string scale_name, zero_point_name;
  at::Tensor scale, zero_point;
};

class Meter {
 public:
  Meter(const SensitivityJob& job, Observer& observer)
      : job_(job),
        observer_(observer),
        model_(job.teacher),
        consumers_(model_.graph.consumers()),
        ends_(find_ends(model_.graph)) {}

  std::vector<LayerSensitivity> run() && {
    list_layers();
    add_changes();
    const std::int64_t images = job_.images.size(0);
    total_ = (images + kBatch - 1) / kBatch * static_cast<std::int64_t>(layers_.size());
    for (std::int64_t first = 0; first < images; first += kBatch)
      measure(job_.images.narrow(0, first, std::min(kBatch, images - first)));
    for (LayerSensitivity& row : rows_)
      for (auto* sensitivities : {&row.weight_sensitivity, &row.input_sensitivity})
        for (auto& [bits, sensitivity] : *sensitivities) sensitivity /= static_cast<double>(images);
    return std::move(rows_);
  }

 private:
  void list_layers() {
    const auto macs = models::multiply_accumulates(model_);
    for (std::size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      const Node& node = model_.graph.nodes[i];
      if (!is_layer(node)) continue;
      layers_.push_back(static_cast<NodeId>(i));
      LayerSensitivity row;
      row.layer = node.name;
      row.op = models::op_name(node.op);
      row.macs = macs[i];
      row.end = ends_.first[i] || ends_.last[i];
      rows_.push_back(row);
    }
    changes_.resize(layers_.size());
  }

  // Students with one number of bits everywhere tell what each of their layers is made into.
  void add_changes() {
    std::map<std::int64_t, Student> students;
    for (std::int64_t bits = job_.min_bits; bits <= job_.max_bits; ++bits)
      students.emplace(bits, student_of(bits));
    const RoundingMethod& method = rounding_method(job_.options.weights.rounding);
    if (method.needs_images()) round_layers(students, method);
    for (const auto& [bits, student] : students)
      for (const WeightSite& site : weight_sites(student)) {
        const auto& name = student.graph[site.layer].name;
        for (std::size_t l = 0; l < layers_.size(); ++l)
          if (rows_[l].layer == name) changes_[l][bits] = change(student, site, rows_[l], bits);
      }
  }

  Student student_of(std::int64_t bits) const {
    QuantOptions options = job_.options;
    options.first_last_bits = 0;
    options.weights.num_bits = options.activations.num_bits = bits;
    options.weights.layer_bits.clear();
    options.activations.layer_bits.clear();
    options.activations.calibration_images = job_.images.size(0);
    Student student = insert_quantizers(model_, options);
    if (job_.inputs) calibrate(student, job_.images, kBatch);
    return student;
  }

  // Of what a layer reads in the float network the moments serve all numbers of bits.
  void round_layers(std::map<std::int64_t, Student>& students, const RoundingMethod& method) {
    Student& any = students.begin()->second;
    const RoundingJob job{
        .teacher = model_,
        .student = any,
        .method = method,
        .images = job_.rounding_images.defined() ? job_.rounding_images : job_.images,
        .batch_size = kBatch,
        .seed = job_.seed};
    std::set<std::string> rounded;
    visit_input_moments(job, observer_, [&](std::size_t i, const InputMoments& moments) {
      if (!rounded.insert(weight_sites(any)[i].parameter).second) return;
      for (auto& [bits, student] : students)
        round_site(student, model_, weight_sites(student)[i], moments, method);
    });
    if (job_.options.bias_correction == BiasCorrection::bn_statistics)
      for (auto& [bits, student] : students) correct_weight_errors(student);
  }

  // Of the weights alone: what the inputs' grids do is measured apart.
  void correct_weight_errors(Student& student) const {
    auto inputs = infer_layer_inputs(student, model_);
    for (LayerInput& input : inputs) input.quantized_mean = input.mean;
    correct_bias(student, model_, inputs);
  }

  Change change(const Student& student, const WeightSite& site, LayerSensitivity& row,
                std::int64_t bits) const {
    const Node& layer = student.graph[site.layer];
    const auto param = [&](const Node& node, const char* role) {
      const auto found = node.params.find(role);
      return found == node.params.end() ? at::Tensor() : student.parameters.at(found->second);
    };
    Change change;
    const at::Tensor& latent = student.parameters.at(site.parameter);
    row.weights = latent.numel();
    row.weight_sensitivity[bits] = 0;
    change.weight = site.op->forward({latent}, student.parameters);
    change.bias = param(layer, "bias");
    if (const NodeId behind = norm_behind(layer.name); behind >= 0)
      change.beta = param(student.graph[student.graph.id_of(model_.graph[behind].name)], "beta");
    const Node& before = student.graph[layer.inputs[0]];
    const auto* quantizer = activation_quantizer(before);
    // The image has bits of its own.
    if (!quantizer || !job_.inputs || ends_.first[model_.graph.id_of(layer.name)]) return change;
    row.input_sensitivity[bits] = 0;
    change.quantizer = models::get_if<models::Custom>(before)->op;
    change.scale_name = quantizer->scale_name();
    change.zero_point_name = quantizer->zero_point_name();
    change.scale = student.parameters.at(change.scale_name);
    change.zero_point = student.parameters.at(change.zero_point_name);
    return change;
  }

  NodeId norm_behind(const std::string& layer) const {
    return models::following_batch_norm(model_.graph, consumers_, model_.graph.id_of(layer));
  }

  void measure(const at::Tensor& images) {
    models::Taps taps;
    std::set<NodeId> wanted;
    for (const NodeId layer : layers_)
      for_each_border(model_.graph, reached_from(model_.graph, layer),
                      [&](NodeId id) { wanted.insert(id); });
    taps.nodes.assign(wanted.begin(), wanted.end());
    const at::Tensor expected = models::execute(model_.graph, model_.parameters, images, &taps);
    for (std::size_t i = 0; i < taps.nodes.size(); ++i) stored_[taps.nodes[i]] = taps.values[i];
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      stop_if_asked();
      for (const auto& [bits, change] : changes_[l]) {
        rows_[l].weight_sensitivity[bits] +=
            divergence(layers_[l], weights_of(change), images, expected);
        if (change.quantizer)
          rows_[l].input_sensitivity[bits] +=
              divergence(layers_[l], input_of(change), images, expected);
      }
      observer_.on_progress({"sensitivity", ++done_, total_, begin_.seconds(), {}});
    }
  }

  static Change weights_of(Change change) {
    change.quantizer = nullptr;
    return change;
  }
  static Change input_of(Change change) {
    change.weight = change.bias = change.beta = at::Tensor();
    return change;
  }

  // Sum over the images. What lies before the layer is taken from stored_.
  double divergence(NodeId layer, const Change& change, const at::Tensor& images,
                    const at::Tensor& expected) const {
    const auto reached = reached_from(model_.graph, layer);
    models::ParameterStore parameters = model_.parameters;
    Graph graph;
    graph.input_shape = model_.graph.input_shape;
    graph.signature = model_.graph.signature;
    graph.input = graph.add({own_name("images"), models::Input{}, {}});
    std::map<NodeId, NodeId> copies;
    for_each_border(model_.graph, reached, [&](NodeId id) {
      if (copies.contains(id)) return;
      copies[id] =
          graph.add({own_name(std::to_string(id)),
                     models::Custom{std::make_shared<models::StoredTensor>(stored_.at(id))},
                     {}});
    });
    const NodeId behind = norm_behind(model_.graph[layer].name);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (!reached[i]) continue;
      const auto id = static_cast<NodeId>(i);
      Node node = model_.graph[id];
      for (NodeId& input : node.inputs) input = copies.at(input);
      if (id == layer) apply(change, node, graph, parameters);
      if (id == behind && change.beta.defined())
        node.params["beta"] = put(parameters, node.name + ".changed_beta", change.beta);
      copies[id] = graph.add(std::move(node));
    }
    graph.output = copies.at(model_.graph.output);
    const at::Tensor answer = models::execute(graph, parameters, images);
    return losses::divergence(graph.signature.kind, answer, expected, /*tau=*/1, /*divisor=*/1)
        .item<double>();
  }

  static void apply(const Change& change, Node& layer, Graph& graph,
                    models::ParameterStore& parameters) {
    if (change.weight.defined()) {
      layer.inputs.resize(1);
      layer.params["weight"] = put(parameters, layer.name + ".changed_weight", change.weight);
    }
    if (change.bias.defined())
      layer.params["bias"] = put(parameters, layer.name + ".changed_bias", change.bias);
    if (!change.quantizer) return;
    put(parameters, change.scale_name, change.scale);
    put(parameters, change.zero_point_name, change.zero_point);
    layer.inputs[0] = graph.add(
        {own_name("input_quantizer"), models::Custom{change.quantizer}, {layer.inputs[0]}});
  }

  static std::string put(models::ParameterStore& parameters, const std::string& name,
                         const at::Tensor& value) {
    parameters.set(name, value);
    return name;
  }

  void stop_if_asked() const {
    if (observer_.stop_requested())
      throw Error(ErrorCode::stopped,
                  "stopped while the sensitivity of layers was measured; nothing of it was kept, "
                  "the same command starts anew");
  }

  const SensitivityJob& job_;
  Observer& observer_;
  models::Model model_;
  std::vector<std::vector<NodeId>> consumers_;
  Ends ends_;
  std::vector<NodeId> layers_;
  std::vector<LayerSensitivity> rows_;
  std::vector<std::map<std::int64_t, Change>> changes_;  // by layer, by bits
  std::map<NodeId, at::Tensor> stored_;
  std::int64_t done_ = 0, total_ = 0;
  Stopwatch begin_;
};

}  // namespace

std::vector<LayerSensitivity> measure_sensitivity(const SensitivityJob& job, Observer& observer) {
  const at::NoGradGuard no_grad;
  return Meter(job, observer).run();
}

}  // namespace zsq::quant
