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

// Whether names tell that BatchNorm was folded into a convolution. What exporters write, by what
// PyTorch 2.11 and tf2onnx 1.16 were seen to:
//   PyTorch by TorchScript   weight and bias are both made up ("onnx::Conv_41"; numbers alone
//   before
//                            1.12); a bias that was there all along has its name, and so has the
//                            weight of a convolution without one
//   PyTorch by torch.export  the bias is "<weight>_bias" or, where there was one, keeps its name;
//                            the node is named "node_Conv_50", an untouched one "node_conv2d_2"
//   tf2onnx                  "fused_bn" is in the name of the bias
// Of other exporters, that the bias is not the sibling "<layer>.bias" of "<layer>.weight". A frozen
// TorchScript has lost all names, which says nothing. A bias of zeros says nothing either: that
// exporter gives one to convolutions without (optimize=False), and equal ones share a name.
bool made_up(const std::string& name) {
  const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  return number || name.starts_with("onnx::");
}

bool names_tell_fold(const Node& node) {
  const std::string &weight = node.params.at("weight"), &bias = node.params.at("bias");
  if (made_up(weight) && made_up(bias)) return true;
  if (bias == weight + "_bias" || node.name.starts_with("node_Conv_")) return true;
  if (bias.find("fused_bn") != std::string::npos) return true;
  constexpr std::string_view kWeight = ".weight";
  const auto layer = weight.substr(0, weight.rfind('.'));
  return weight.ends_with(kWeight) && layer != "CONSTANTS" && bias != layer + ".bias";
}

// A convolution with a bias other than zeros, as a folded BatchNorm leaves it.
bool has_bias(const Model& model, const Node& node) {
  if (!is<Conv2d>(node) || !node.params.contains("weight") || !node.params.contains("bias"))
    return false;
  const std::string& bias = node.params.at("bias");
  return !model.parameters.contains(bias) || model.parameters.at(bias).ne(0).any().item<bool>();
}

bool was_folded(const Model& model, const Node& node) {
  return has_bias(model, node) && names_tell_fold(node);
}

bool any_folded(const Model& model) {
  return std::ranges::any_of(model.graph.nodes,
                             [&](const Node& node) { return was_folded(model, node); });
}
bool any_bias(const Model& model) {
  return std::ranges::any_of(model.graph.nodes,
                             [&](const Node& node) { return has_bias(model, node); });
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
  const Exporter exporter = exporter_of(model);
  const std::string how = exporter.export_line.empty()
                              ? (exporter.advice.empty() ? "" : ": " + exporter.advice)
                              : ":\n  " + exporter.export_line;
  constexpr const char* kInstead =
      "statistics of synthetic images take the place of those of training (ResNet-20: 0.5 points "
      "of top-1 less at W4A4, none at W8A8)";
  const std::string found = origin(model) + " has no BatchNorm layers";
  if (any_folded(model)) {
    verdict.kind = BatchNormVerdict::Kind::folded;
    const std::string cause = found +
                              ": its convolutions carry biases with names made up by the "
                              "exporter, so BatchNorm was folded into them on export; ";
    const std::string remedy =
        "bring them back with --bn_stats, or export the network again with BatchNorm kept" + how;
    verdict.explanation = cause + kInstead + ". Better, " + remedy;
    verdict.refusal = cause + remedy;
    return verdict;
  }
  verdict.kind = BatchNormVerdict::Kind::none;
  const std::string remedy =
      !exporter.leaves_traces
          ? "If yours was trained with them, export it again with BatchNorm kept" + how
      : any_bias(model)
          ? "Names show no trace of one that was folded on export. If it was folded before, which "
            "leaves biases as these convolutions have, export the network as it was trained"
          : "None was folded, which would have left biases, so it was trained without";
  verdict.explanation = found + "; " + kInstead + ". " + remedy;
  verdict.refusal = found + ". " + remedy;
  return verdict;
}

BatchNormCensus count_batch_norm(const Model& model) {
  BatchNormCensus census;
  for (const auto& node : model.graph.nodes) census.convolutions += is<Conv2d>(node) ? 1 : 0;
  for (const auto& name : convolutions_without_batch_norm(model.graph)) {
    const Node& node = model.graph[model.graph.id_of(name)];
    (was_folded(model, node) ? census.look_folded : census.without).push_back(name);
  }
  return census;
}

void require_batch_norm(const Model& model) {
  const auto verdict = inspect_batch_norm(model);
  if (verdict.kind != BatchNormVerdict::Kind::usable) {
    throw Error(ErrorCode::unsupported_model, verdict.refusal);
  }
}

}  // namespace zsq::models
