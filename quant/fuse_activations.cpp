// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/clamp.h>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "models/batch_norm_chain.h"
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
    const at::Tensor& x = inputs[0];
    const at::Tensor gamma = param("gamma"), beta = param("beta"), mean = param("mean"),
                     variance = param("variance");
    const auto residual = inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt;
    // The kernel is for images, adds without broadcasting, and needs a scale.
    if (x.dim() != 4 || (residual && residual->sizes() != x.sizes()) ||
        !parameters.contains(quantizer_->scale_name())) {
      auto y = at::batch_norm(x, gamma, beta, mean, variance, /*training=*/false,
                              /*momentum=*/0.0, eps_, /*cudnn_enabled=*/true);
      if (residual) y = at::add(y, *residual);
      return quantizer_->forward({at::clamp(y, clip_.lo, clip_.hi)}, parameters);
    }
    const auto& spec = quantizer_->spec();
    return cuda_kernels::bn_clip_fake_quant(
        x, residual, gamma, beta, mean, variance, parameters.at(quantizer_->scale_name()),
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

// What stands before a quantizer and is read by nothing else.
models::BatchNormChain chain_before(const Graph& graph,
                                    const std::vector<std::vector<NodeId>>& consumers,
                                    NodeId quantizer) {
  const NodeId last = graph[quantizer].inputs[0];
  if (consumers[last].size() > 1 || last == graph.output) return {};
  return models::batch_norm_chain(graph, consumers, last);
}

// The same grid again after an operator that passes values on: nothing changes. Only a Pad can
// bring in a value of its own.
bool repeats(const Graph& graph, NodeId quantizer) {
  const NodeId pass_through = graph[quantizer].inputs[0];
  const auto* pad = models::get_if<models::Pad>(graph[pass_through]);
  if (graph[pass_through].inputs.empty() || (pad && pad->value != 0)) return false;
  const auto* before = activation_quantizer(graph[graph[pass_through].inputs[0]]);
  return before && before->scale_name() == activation_quantizer(graph[quantizer])->scale_name();
}

}  // namespace

Graph fuse_activations(const Graph& student) {
  const auto consumers = student.consumers();
  std::vector<models::BatchNormChain> chains(student.nodes.size());
  std::vector<bool> merged(student.nodes.size());
  for (NodeId id : activation_sites(student)) {
    chains[id] = chain_before(student, consumers, id);
    if (chains[id].batch_norm < 0) continue;
    for (NodeId part : {chains[id].batch_norm, chains[id].add, chains[id].clip})
      if (part >= 0) merged[part] = true;
  }
  Graph fused;
  fused.input_shape = student.input_shape;
  fused.signature = student.signature;
  std::vector<NodeId> ids(student.nodes.size(), -1);
  for (std::size_t i = 0; i < student.nodes.size(); ++i) {
    if (merged[i]) continue;
    Node node = student.nodes[i];
    const auto chain = chains[i];
    if (chain.batch_norm >= 0) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const auto clip = chain.clip < 0 ? models::Clip{-kInfinity, kInfinity}
                                       : *models::get_if<models::Clip>(student[chain.clip]);
      node.op = models::Custom{std::make_shared<BnClipFakeQuant>(
          student[chain.batch_norm], clip, models::get_if<models::Custom>(node)->op)};
      node.inputs = student[chain.batch_norm].inputs;
      if (chain.add >= 0) node.inputs.push_back(chain.residual);
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
