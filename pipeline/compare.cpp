// SPDX-License-Identifier: Apache-2.0
#include "pipeline/compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "eval/evaluate.h"
#include "losses/divergence.h"
#include "models/batch_norm_chain.h"
#include "models/execute.h"
#include "pipeline/images/image_job.h"
#include "pipeline/report/json.h"
#include "pipeline/report/output_comparison.h"
#include "pipeline/report/result_json.h"
#include "pipeline/run/rewrite.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/recorded_outputs.h"
#include "pipeline/session/session.h"
#include "quant/placement.h"

namespace zsq {
namespace {

using models::NodeId;

constexpr std::int64_t kCompareBatch = 16;

// The network as the run in a folder quantized it: the same function, of which some channels are
// split, scaled or rotated, so that its layers compare with those of the run.
models::Model as_quantized_in(const std::filesystem::path& run, models::Model network) {
  const Recipe recipe = load_recipe((run / "resolved.yaml").string());
  return pipeline::rewritten(std::move(network), recipe);
}

bool is_run(const std::filesystem::path& path) {
  return std::filesystem::exists(path / "resolved.yaml");
}

bool is_float(const models::Model& model) {
  return std::ranges::none_of(model.graph.nodes,
                              [](const auto& node) { return models::is<models::Custom>(node); });
}

// Layer name -> node whose value is the layer's with its BatchNorm.
std::map<std::string, NodeId> layer_outputs(const models::Graph& graph) {
  std::map<std::string, NodeId> outputs;
  const auto consumers = graph.consumers();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (!quant::is_layer(graph[id])) continue;
    const NodeId batch_norm = models::following_batch_norm(graph, consumers, id);
    outputs[graph[id].name] = batch_norm >= 0 ? batch_norm : id;
  }
  return outputs;
}

// Sums over the values of one layer.
struct Sums {
  double count = 0, a = 0, a2 = 0, difference = 0, difference2 = 0, largest = 0;

  void add(const at::Tensor& x, const at::Tensor& y) {
    const auto exact = x.to(at::kDouble), off = y.to(at::kDouble) - exact;
    count += static_cast<double>(exact.numel());
    a += exact.sum().item<double>();
    a2 += exact.square().sum().item<double>();
    difference += off.sum().item<double>();
    difference2 += off.square().sum().item<double>();
    largest = std::max(largest, off.abs().max().item<double>());
  }

  LayerDifference result(std::string name) const {
    const double deviation = std::sqrt(std::max(a2 / count - (a / count) * (a / count), 1e-300));
    const double sqnr = difference2 > 0 ? 10 * std::log10(a2 / difference2)
                                        : std::numeric_limits<double>::infinity();
    return {std::move(name), sqnr, difference / count / deviation, largest / deviation};
  }
};

class Comparison {
 public:
  Comparison(const std::filesystem::path& a, const std::filesystem::path& b,
             const CompareOptions& options, Observer& observer)
      : options_(options), recipe_(options.recipe), observer_(observer) {
    const Device device = pipeline::start_process(recipe_.process, observer);
    pipeline::take_size_from_preprocessing(a, recipe_.data, recipe_.model, observer);
    // The outputs of both mean what the file of either says.
    for (const auto& file : {a, b}) pipeline::take_recorded_outputs(file, recipe_.model);
    a_ = pipeline::load_any(a, recipe_.model, device);
    b_ = pipeline::load_any(b, recipe_.model, device);
    result_.a = a.string();
    result_.b = b.string();
    if (a_.graph.input_shape != b_.graph.input_shape)
      throw Error(ErrorCode::usage, result_.a + " and " + result_.b +
                                        " take images of different shapes; only models of one "
                                        "network can be compared");
    if (!pipeline::resolve_preprocessing(a_, recipe_.data, observer))
      pipeline::resolve_preprocessing(b_, recipe_.data, observer);
    if (is_run(b) && !is_run(a) && is_float(a_)) a_ = as_quantized_in(b, std::move(a_));
    if (is_run(a) && !is_run(b) && is_float(b_)) b_ = as_quantized_in(a, std::move(b_));
    match();
  }

  ModelComparison run() && {
    const at::NoGradGuard no_grad;
    const at::Tensor images = make_images();
    std::vector<Sums> sums(names_.size());
    // What the first model's outputs mean is what both mean.
    pipeline::OutputComparison outputs(a_.graph.signature.kind);
    for (const auto& batch : images.split(kCompareBatch)) {
      models::Taps in_a{nodes_a_, {}}, in_b{nodes_b_, {}};
      const auto of_a = models::execute(a_.graph, a_.parameters, batch, &in_a);
      const auto of_b = models::execute(b_.graph, b_.parameters, batch, &in_b);
      if (of_a.sizes() != of_b.sizes())
        throw Error(ErrorCode::usage,
                    result_.a + " and " + result_.b + " give different numbers of outputs");
      outputs.add(of_a, of_b);
      result_.outputs = of_a[0].numel();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(in_a.values[i], in_b.values[i]);
      result_.images += batch.size(0);
      observer_.on_progress({"compare", result_.images, images.size(0), 0, {}});
    }
    result_.output_kind = losses::name_of(a_.graph.signature.kind);
    static_cast<OutputAgreement&>(result_) = outputs.result();
    for (std::size_t i = 0; i < sums.size(); ++i)
      result_.layers.push_back(sums[i].result(names_[i]));
    std::stable_sort(result_.layers.begin(), result_.layers.end(),
                     [](const auto& x, const auto& y) { return x.sqnr < y.sqnr; });
    return std::move(result_);
  }

 private:
  void match() {
    const auto in_a = layer_outputs(a_.graph), in_b = layer_outputs(b_.graph);
    for (const auto& node : a_.graph.nodes) {
      const auto first = in_a.find(node.name);
      if (first == in_a.end()) continue;
      const auto second = in_b.find(node.name);
      if (second == in_b.end()) {
        result_.only_in_a.push_back(node.name);
        continue;
      }
      names_.push_back(node.name);
      nodes_a_.push_back(first->second);
      nodes_b_.push_back(second->second);
    }
    for (const auto& [name, node] : in_b)
      if (!in_a.contains(name)) result_.only_in_b.push_back(name);
    if (names_.empty())
      throw Error(ErrorCode::usage, result_.a + " and " + result_.b +
                                        " have no layer name in common; only models of one "
                                        "network can be compared");
  }

  at::Tensor make_images() {
    const bool real = !recipe_.data.eval_data.empty();
    result_.images_kind = real ? "real" : enum_name(pipeline::procedural_source(a_));
    if (!real) return pipeline::procedural_images(a_, recipe_, 0, options_.images, 0);
    const auto source = eval::open_data(recipe_.data, observer_);
    const at::Tensor images = source->load(0, std::min(options_.images, source->size())).images;
    pipeline::require_input_shape(a_, images, recipe_.data.eval_data);
    return images.to(a_.parameters.device());
  }

  const CompareOptions& options_;
  Recipe recipe_;
  Observer& observer_;
  models::Model a_, b_;
  std::vector<std::string> names_;
  std::vector<NodeId> nodes_a_, nodes_b_;
  ModelComparison result_;
};

}  // namespace

ModelComparison compare_models(const std::filesystem::path& a, const std::filesystem::path& b,
                               const CompareOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return Comparison(a, b, options, observer ? *observer : silent).run(); });
}

std::string to_json(const ModelComparison& c) {
  auto layers = pipeline::Json::array();
  for (const auto& layer : c.layers)
    layers.push_back({{"name", layer.name},
                      {"sqnr", layer.sqnr},
                      {"mean", layer.mean},
                      {"largest", layer.largest}});
  pipeline::Json json{{"a", c.a},
                      {"b", c.b},
                      {"images", c.images},
                      {"images_kind", c.images_kind},
                      {"output_kind", c.output_kind},
                      {"divergence", c.divergence},
                      {"agreement", c.agreement},
                      {"layers", layers},
                      {"only_in_a", c.only_in_a},
                      {"only_in_b", c.only_in_b}};
  if (!c.outputs_apart.empty()) json["outputs"] = c.outputs_apart;
  return pipeline::dump(json);
}

}  // namespace zsq
