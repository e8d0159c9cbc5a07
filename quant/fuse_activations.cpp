// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/clamp.h>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "quant/student.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ParameterStore;

class BnClipFakeQuant : public models::CustomOp {
 public:
  BnClipFakeQuant(const Node& batch_norm, models::Clip clip,
                  std::shared_ptr<const models::CustomOp> quantizer)
      : params_(batch_norm.params),
        eps_(models::get_if<models::BatchNorm>(batch_norm)->eps),
        clip_(clip),
        op_(std::move(quantizer)),
        quantizer_(static_cast<const ActivationQuantizer*>(op_.get())) {}

  std::string kind() const override { return "bn_clip_fake_quant"; }

  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const ParameterStore& parameters) const override {
    const auto param = [&](const char* role) { return parameters.at(params_.at(role)); };
    const at::Tensor x = inputs[0], gamma = param("gamma"), beta = param("beta"),
                     mean = param("mean"), variance = param("variance");
    // The kernel is for images and needs a scale.
    if (x.dim() != 4 || !parameters.contains(quantizer_->scale_name())) {
      const auto y = at::batch_norm(x, gamma, beta, mean, variance, /*training=*/false,
                                    /*momentum=*/0.0, eps_, /*cudnn_enabled=*/true);
      return quantizer_->forward({at::clamp(y, clip_.lo, clip_.hi)}, parameters);
    }
    const auto& spec = quantizer_->spec();
    return cuda_kernels::bn_clip_fake_quant(
        x, gamma, beta, mean, variance, parameters.at(quantizer_->scale_name()),
        parameters.at(quantizer_->zero_point_name()),
        {eps_, clip_.lo, clip_.hi, spec.qmin, spec.qmax, spec.surrogate});
  }

 private:
  std::map<std::string, std::string> params_;
  double eps_;
  models::Clip clip_;
  std::shared_ptr<const models::CustomOp> op_;
  const ActivationQuantizer* quantizer_;
};

// What stands before a quantizer and is read by nothing else; -1: nothing of the kind.
struct Chain {
  NodeId batch_norm = -1, clip = -1;
};

Chain chain_before(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers,
                   NodeId quantizer) {
  const auto alone = [&](NodeId id) { return consumers[id].size() == 1 && id != graph.output; };
  Chain chain;
  NodeId id = graph[quantizer].inputs[0];
  if (models::is<models::Clip>(graph[id]) && alone(id)) {
    chain.clip = id;
    id = graph[id].inputs[0];
  }
  if (models::is<models::BatchNorm>(graph[id]) && alone(id)) chain.batch_norm = id;
  return chain;
}

// The same grid again behind an operator that hands values on: nothing changes. Only a Pad can
// bring in a value of its own.
bool repeats(const Graph& graph, NodeId quantizer) {
  const NodeId carrier = graph[quantizer].inputs[0];
  const auto* pad = models::get_if<models::Pad>(graph[carrier]);
  if (graph[carrier].inputs.empty() || (pad && pad->value != 0)) return false;
  const auto* before = activation_quantizer(graph[graph[carrier].inputs[0]]);
  return before && before->scale_name() == activation_quantizer(graph[quantizer])->scale_name();
}

}  // namespace

Graph fuse_activations(const Graph& student) {
  const auto consumers = student.consumers();
  std::vector<Chain> chains(student.nodes.size());
  std::vector<bool> merged(student.nodes.size());
  for (NodeId id : activation_sites(student)) {
    chains[id] = chain_before(student, consumers, id);
    if (chains[id].batch_norm < 0) continue;
    merged[chains[id].batch_norm] = true;
    if (chains[id].clip >= 0) merged[chains[id].clip] = true;
  }
  Graph fused;
  fused.input_shape = student.input_shape;
  std::vector<NodeId> ids(student.nodes.size(), -1);
  for (std::size_t i = 0; i < student.nodes.size(); ++i) {
    if (merged[i]) continue;
    Node node = student.nodes[i];
    const Chain chain = chains[i];
    if (chain.batch_norm >= 0) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const auto clip = chain.clip < 0 ? models::Clip{-kInfinity, kInfinity}
                                       : *models::get_if<models::Clip>(student[chain.clip]);
      node.op = models::Custom{std::make_shared<BnClipFakeQuant>(
          student[chain.batch_norm], clip, models::get_if<models::Custom>(node)->op)};
      node.inputs = student[chain.batch_norm].inputs;
    }
    for (NodeId& input : node.inputs) input = ids[input];
    if (activation_quantizer(student.nodes[i]) && repeats(student, static_cast<NodeId>(i))) {
      ids[i] = node.inputs[0];
      continue;
    }
    ids[i] = fused.add(std::move(node));
  }
  fused.input = ids[student.input];
  fused.output = ids[student.output];
  return fused;
}

}  // namespace zsq::quant
