// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "models/bn_statistics.h"
#include "models/exporter.h"
#include "models/load.h"

namespace zsq::models {
namespace {

// A channel whose variance vanished in training says nothing about the images.
constexpr double kDeadVariance = 1e-10;

// Whether a convolution's bias has a name that an exporter made up: one that folds BatchNorm does
// so, while a bias that was there all along is the sibling "<layer>.bias" of "<layer>.weight". A
// frozen TorchScript has lost all names, which says nothing.
bool has_made_up_bias(const Node& node) {
  const auto weight = node.params.find("weight"), bias = node.params.find("bias");
  if (!is<Conv2d>(node) || weight == node.params.end() || bias == node.params.end()) return false;
  const auto layer = weight->second.substr(0, weight->second.rfind('.'));
  return layer != "CONSTANTS" && bias->second != layer + ".bias";
}

// If most biases are such.
bool looks_folded(const Graph& graph) {
  std::int64_t biases = 0, made_up = 0;
  for (const auto& node : graph.nodes) {
    biases += is<Conv2d>(node) && node.params.count("bias") ? 1 : 0;
    made_up += has_made_up_bias(node) ? 1 : 0;
  }
  return 2 * made_up > biases;
}

std::string origin(const Model& model) {
  const auto file = model.source_path.empty() ? std::string("The network")
                                              : "The network in '" + model.source_path + "'";
  return file + (model.producer.empty() ? "" : " (written by " + model.producer + ")");
}

}  // namespace

std::string name_of(BatchNormVerdict::Kind kind) {
  using enum BatchNormVerdict::Kind;
  return kind == usable ? "usable" : kind == folded ? "folded" : "none";
}

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
        "quantization needs are gone. Bring them back with --bn_stats, go on without them (zsq "
        "quantize --allow_no_bn), or export the network again with BatchNorm kept:\n  " +
        exporter_of(model).export_line;
  } else {
    verdict.kind = BatchNormVerdict::Kind::none;
    verdict.explanation =
        origin(model) +
        " has no BatchNorm layers. Data-free quantization takes the distribution of the training "
        "images from their running statistics, so it needs a network that was trained with them; "
        "zsq quantize --allow_no_bn goes on without, at a cost. If yours was, the export dropped "
        "them; this line keeps them:\n  " +
        exporter_of(model).export_line;
  }
  return verdict;
}

BatchNormCensus count_batch_norm(const Model& model) {
  const auto& nodes = model.graph.nodes;
  // Beside layers with BatchNorm a bias of zeros was not made by a fold: PyTorch lets equal biases
  // of an untrained network share one name.
  const bool some = std::any_of(nodes.begin(), nodes.end(), is<BatchNorm>);
  BatchNormCensus census;
  for (const auto& node : nodes) census.convolutions += is<Conv2d>(node) ? 1 : 0;
  for (const auto& name : convolutions_without_batch_norm(model.graph)) {
    const Node& node = model.graph[model.graph.id_of(name)];
    const bool folded =
        has_made_up_bias(node) &&
        (!some || model.parameters.at(node.params.at("bias")).ne(0).any().item<bool>());
    (folded ? census.look_folded : census.without).push_back(name);
  }
  return census;
}

void require_batch_norm(const Model& model) {
  const auto verdict = inspect_batch_norm(model);
  if (verdict.kind != BatchNormVerdict::Kind::usable) {
    throw Error(ErrorCode::unsupported_model, verdict.explanation);
  }
}

}  // namespace zsq::models
