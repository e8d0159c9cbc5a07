// SPDX-License-Identifier: Apache-2.0
#include "train/teacher_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/clamp.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "cuda_kernels/bn_clip_moments.h"
#include "cuda_kernels/channel_moments.h"
#include "cuda_kernels/image_conv.h"
#include "models/batch_norm_chain.h"
#include "models/unused_nodes.h"

namespace zsq::train {

struct TeacherPass::Pass {
  std::vector<losses::Moments> moments;
  Precision precision = Precision::fp32;
};

struct TeacherPass::Block {
  BlockBytes bytes;
  models::Graph rest;                                 // what follows the block
  std::shared_ptr<const RecomputedBlock> recomputed;  // null: the last one
};

namespace {

using models::Graph;
using models::Node;
using models::NodeId;

// Runs a chain and writes the moments of its input to one place of them.
class ChainWithMoments : public models::CustomOp {
 public:
  ChainWithMoments(const Node& batch_norm, const models::ParameterStore& parameters,
                   const models::Clip* clip, std::shared_ptr<std::vector<losses::Moments>> moments,
                   std::size_t place)
      : params_(batch_norm.params), moments_(std::move(moments)), place_(place) {
    const at::NoGradGuard no_grad;
    const auto param = [&](const char* role) { return parameters.at(params_.at(role)); };
    args_.eps = models::get_if<models::BatchNorm>(batch_norm)->eps;
    folded_ = cuda_kernels::fold_batch_norm(param("gamma"), param("beta"), param("mean"),
                                            param("variance"), args_.eps);
    if (!clip) return;
    args_.lo = clip->lo;
    args_.hi = clip->hi;
  }

  std::string kind() const override { return "bn_clip_moments"; }

  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto param = [&](const char* role) { return parameters.at(params_.at(role)); };
    const at::Tensor& x = inputs[0];
    const at::Tensor mean = param("mean");
    const auto residual = inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt;
    auto& moments = (*moments_)[place_];
    // The kernel is for images and adds without broadcasting.
    if (x.dim() != 4 || (residual && residual->sizes() != x.sizes())) {
      std::tie(moments.mean, moments.variance) = cuda_kernels::channel_moments(x);
      auto y = at::batch_norm(x, param("gamma"), param("beta"), mean, param("variance"),
                              /*training=*/false, /*momentum=*/0.0, args_.eps,
                              /*cudnn_enabled=*/true);
      if (residual) y = at::add(y, *residual);
      return at::clamp(y, args_.lo, args_.hi);
    }
    auto out = cuda_kernels::bn_clip_moments(x, residual, folded_, mean, args_);
    moments = {out.batch_mean, out.batch_variance};
    return out.y;
  }

 private:
  std::map<std::string, std::string> params_;
  cuda_kernels::BnClipMomentsArgs args_;
  cuda_kernels::FoldedBatchNorm folded_;
  std::shared_ptr<std::vector<losses::Moments>> moments_;
  std::size_t place_;
};

// A convolution of few channels, as the first one has.
class ImageConv : public models::CustomOp {
 public:
  ImageConv(const Node& node, std::shared_ptr<const Precision> precision)
      : params_(node.params),
        op_(*models::get_if<models::Conv2d>(node)),
        precision_(std::move(precision)) {}

  // Whether conv_from_image computes it, and it is worth it.
  static bool fits(const Node& node, const models::ParameterStore& parameters) {
    const auto* op = models::get_if<models::Conv2d>(node);
    if (!op || node.inputs.size() > 1) return false;  // ... whose weight is another node
    const auto& pads = op->pads;
    const auto sizes = parameters.at(node.params.at("weight")).sizes();
    return op->groups == 1 && op->dilation == models::Pair{1, 1} &&
           op->stride[0] == op->stride[1] &&
           pads == models::Pads{pads[0], pads[0], pads[0], pads[0]} && sizes[1] <= 4 &&
           sizes[2] == sizes[3];
  }

  std::string kind() const override { return "image_conv"; }

  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto bias = params_.find("bias");
    return cuda_kernels::conv_from_image(
        inputs[0], parameters.at(params_.at("weight")),
        bias == params_.end() ? std::nullopt : std::optional(parameters.at(bias->second)),
        op_.stride[0], op_.pads[0], *precision_ == Precision::bf16 ? at::kBFloat16 : at::kFloat);
  }

 private:
  std::map<std::string, std::string> params_;
  models::Conv2d op_;
  std::shared_ptr<const Precision> precision_;
};

double bytes_of(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 4.0, std::multiplies<>());
}

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

Graph with_moments(const Graph& graph, const models::ParameterStore& parameters,
                   const std::shared_ptr<std::vector<losses::Moments>>& moments,
                   const std::shared_ptr<const Precision>& precision) {
  moments->resize(models::batch_norm_inputs(graph).size());
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
  fused.signature = graph.signature;
  std::vector<NodeId> ids(graph.nodes.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (inside[i]) continue;
    Node node = graph.nodes[i];
    if (const auto& chain = chains[i]; chain.batch_norm >= 0) {
      const auto& batch_norm = graph[chain.batch_norm];
      const auto* clip = chain.clip < 0 ? nullptr : models::get_if<models::Clip>(graph[chain.clip]);
      node.op = models::Custom{
          std::make_shared<ChainWithMoments>(batch_norm, parameters, clip, moments,
                                             places[static_cast<std::size_t>(chain.batch_norm)])};
      node.inputs = batch_norm.inputs;
      node.params.clear();
      if (chain.add >= 0) node.inputs.push_back(chain.residual);
    } else if (ImageConv::fits(node, parameters)) {
      node.op = models::Custom{std::make_shared<ImageConv>(node, precision)};
    }
    for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
    ids[i] = fused.add(std::move(node));
  }
  fused.input = ids[static_cast<std::size_t>(graph.input)];
  fused.output = ids[static_cast<std::size_t>(graph.output)];
  return fused;
}

}  // namespace

TeacherPass::TeacherPass(const Graph& teacher, const models::ParameterStore& parameters,
                         double memory)
    : parameters_(parameters),
      run_(std::make_shared<Pass>()),
      graph_(with_moments(teacher, parameters, {run_, &run_->moments}, {run_, &run_->precision})),
      memory_(memory) {
  find_blocks(teacher);
}

TeacherPass::TeacherPass(TeacherPass&&) noexcept = default;
TeacherPass::~TeacherPass() = default;

// The same blocks as the teacher's, of which some nodes are one here. What nothing reads is in no
// block, but has moments all the same.
void TeacherPass::find_blocks(const Graph& teacher) {
  const bool all_read = models::drop_unused_nodes(teacher).nodes.size() == teacher.nodes.size();
  const auto blocks =
      all_read ? models::find_blocks(teacher, parameters_) : std::vector<models::Block>();
  const auto shapes = models::infer_shapes(teacher, parameters_);
  std::map<std::string, NodeId> nodes;
  for (std::size_t id = 0; id < graph_.nodes.size(); ++id)
    nodes[graph_.nodes[id].name] = static_cast<NodeId>(id);
  const auto inside = [&](NodeId entry, NodeId exit) {
    double bytes = 0;
    for (NodeId id = entry + 1; id <= exit; ++id)
      if (!models::is<models::Parameter>(graph_[id]))
        bytes += bytes_of(shapes[teacher.id_of(graph_[id].name)]);
    return bytes;
  };
  NodeId entry = graph_.input, teachers_entry = teacher.input;
  std::size_t place = 0;
  for (const models::Block& block : blocks) {
    const auto found = nodes.find(teacher[block.exit].name);
    const models::Shape& shape = shapes[block.exit];
    if (found == nodes.end() || shape.size() != 4 || found->second == graph_.output) continue;
    const NodeId exit = found->second;
    auto own = std::make_shared<RecomputedBlock>(
        RecomputedBlock{models::cut_out(graph_, entry, exit, shapes[teachers_entry]),
                        &parameters_,
                        {run_, &run_->moments},
                        place,
                        place});
    for (NodeId id = teachers_entry + 1; id <= block.exit; ++id)
      own->last += models::is<models::BatchNorm>(teacher[id]);
    place = own->last;
    blocks_.push_back({{inside(entry, exit), bytes_of(shape)},
                       models::cut_out(graph_, exit, graph_.output, shape),
                       std::move(own)});
    entry = exit;
    teachers_entry = block.exit;
  }
  blocks_.push_back({{inside(entry, graph_.output), 0}, {}, nullptr});
}

std::vector<BlockBytes> TeacherPass::bytes_of_blocks() const {
  std::vector<BlockBytes> bytes;
  for (const Block& block : blocks_) bytes.push_back(block.bytes);
  return bytes;
}

TeacherPass::Result TeacherPass::run_in_blocks(const at::Tensor& images,
                                               std::size_t recomputed) const {
  Result result;
  at::Tensor value = images;
  for (std::size_t i = 0; i < recomputed; ++i) {
    auto [exit, moments] = run_recomputed(blocks_[i].recomputed, value);
    value = std::move(exit);
    result.moments.insert(result.moments.end(), moments.begin(), moments.end());
  }
  const Graph& rest = recomputed == 0 ? graph_ : blocks_[recomputed - 1].rest;
  result.logits = models::execute(rest, parameters_, value);
  const auto own = run_->moments.begin() + std::ssize(result.moments);
  result.moments.insert(result.moments.end(), own, run_->moments.end());
  return result;
}

TeacherPass::Result TeacherPass::operator()(const at::Tensor& images, models::Taps* taps,
                                            Precision precision) const {
  run_->precision = precision;
  Result result;
  if (memory_ > 0 && !taps && precision == Precision::fp32 && at::GradMode::is_enabled() &&
      images.requires_grad()) {
    const double each = memory_ / static_cast<double>(std::max<std::int64_t>(1, images.size(0)));
    result = run_in_blocks(images, blocks_to_recompute(bytes_of_blocks(), each));
  } else {
    result.logits = models::execute(graph_, parameters_, images, taps, precision);
    result.moments = run_->moments;
  }
  std::fill(run_->moments.begin(), run_->moments.end(), losses::Moments{});  // holds no graph alive
  return result;
}

}  // namespace zsq::train
