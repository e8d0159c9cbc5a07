// SPDX-License-Identifier: Apache-2.0
#include "train/teacher_pass.h"

#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/clamp.h>

#include <algorithm>
#include <limits>

#include "cuda_kernels/bn_clip_moments.h"
#include "cuda_kernels/channel_moments.h"
#include "models/batch_norm_chain.h"

namespace zsq::train {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

// Runs a chain and writes the moments of its input to one place of the record.
class ChainWithMoments : public models::CustomOp {
 public:
  ChainWithMoments(const Node& batch_norm, const models::Clip* clip,
                   std::shared_ptr<std::vector<losses::Moments>> record, std::size_t place)
      : params_(batch_norm.params), record_(std::move(record)), place_(place) {
    args_.eps = models::get_if<models::BatchNorm>(batch_norm)->eps;
    if (!clip) return;
    args_.lo = clip->lo;
    args_.hi = clip->hi;
  }

  std::string kind() const override { return "bn_clip_moments"; }

  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto param = [&](const char* role) { return parameters.at(params_.at(role)); };
    const at::Tensor x = inputs[0], gamma = param("gamma"), beta = param("beta"),
                     mean = param("mean"), variance = param("variance");
    const auto residual = inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt;
    auto& moments = (*record_)[place_];
    // The kernel is for images and adds without broadcasting.
    if (x.dim() != 4 || (residual && residual->sizes() != x.sizes())) {
      std::tie(moments.mean, moments.variance) = cuda_kernels::channel_moments(x);
      auto y = at::batch_norm(x, gamma, beta, mean, variance, /*training=*/false,
                              /*momentum=*/0.0, args_.eps, /*cudnn_enabled=*/true);
      if (residual) y = at::add(y, *residual);
      return at::clamp(y, args_.lo, args_.hi);
    }
    auto out = cuda_kernels::bn_clip_moments(x, residual, gamma, beta, mean, variance, args_);
    moments = {out.batch_mean, out.batch_variance};
    return out.y;
  }

 private:
  std::map<std::string, std::string> params_;
  cuda_kernels::BnClipMomentsArgs args_;
  std::shared_ptr<std::vector<losses::Moments>> record_;
  std::size_t place_;
};

// For each node the chain that ends in it; every BatchNorm is in one.
std::vector<models::BatchNormChain> disjoint_chains(const Graph& graph) {
  const auto consumers = graph.consumers();
  std::vector<models::BatchNormChain> chains(graph.nodes.size());
  std::vector<bool> taken(graph.nodes.size());
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (taken[i]) continue;
    const auto chain = models::batch_norm_chain(graph, consumers, static_cast<NodeId>(i));
    if (chain.batch_norm < 0) continue;
    chains[i] = chain;
    for (const NodeId part : {chain.batch_norm, chain.add, chain.clip})
      if (part >= 0) taken[static_cast<std::size_t>(part)] = true;
  }
  return chains;
}

Graph with_moments(const Graph& graph,
                   const std::shared_ptr<std::vector<losses::Moments>>& record) {
  const auto inputs = models::batch_norm_inputs(graph);
  record->resize(inputs.size());
  std::vector<std::size_t> places(graph.nodes.size());
  for (std::size_t i = 0, place = 0; i < graph.nodes.size(); ++i)
    if (models::is<models::BatchNorm>(graph.nodes[i])) places[i] = place++;

  const auto chains = disjoint_chains(graph);
  std::vector<bool> inside(graph.nodes.size());  // of a chain, and not its last node
  for (std::size_t i = 0; i < chains.size(); ++i)
    for (const NodeId part : {chains[i].batch_norm, chains[i].add, chains[i].clip})
      if (part >= 0 && part != static_cast<NodeId>(i))
        inside[static_cast<std::size_t>(part)] = true;

  Graph fused;
  fused.input_shape = graph.input_shape;
  std::vector<NodeId> ids(graph.nodes.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (inside[i]) continue;
    Node node = graph.nodes[i];
    if (const auto& chain = chains[i]; chain.batch_norm >= 0) {
      const auto& batch_norm = graph[chain.batch_norm];
      const auto* clip = chain.clip < 0 ? nullptr : models::get_if<models::Clip>(graph[chain.clip]);
      node.op = models::Custom{std::make_shared<ChainWithMoments>(
          batch_norm, clip, record, places[static_cast<std::size_t>(chain.batch_norm)])};
      node.inputs = batch_norm.inputs;
      node.params.clear();
      if (chain.add >= 0) node.inputs.push_back(chain.residual);
    }
    for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
    ids[i] = fused.add(std::move(node));
  }
  fused.input = ids[static_cast<std::size_t>(graph.input)];
  fused.output = ids[static_cast<std::size_t>(graph.output)];
  return fused;
}

}  // namespace

TeacherPass::TeacherPass(const models::Model& teacher)
    : parameters_(teacher.parameters),
      record_(std::make_shared<Record>()),
      graph_(with_moments(teacher.graph, record_)) {}

TeacherPass::Result TeacherPass::operator()(const at::Tensor& images, models::Taps* taps,
                                            Precision precision) const {
  auto logits = models::execute(graph_, parameters_, images, taps, precision);
  Result result{std::move(logits), *record_};
  std::fill(record_->begin(), record_->end(), losses::Moments{});  // holds no graph alive
  return result;
}

}  // namespace zsq::train
