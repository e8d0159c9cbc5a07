// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/merge_branches.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "quant/data_free/moments.h"
#include "quant/data_free/rows.h"
#include "quant/rewrites/parallel_branches.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

constexpr double kLeastShare = 1e-4;  // of the variance of independent branches

// A branch with its BatchNorm folded in: f64.
struct Linear {
  at::Tensor weight, constant, deviation;
};

class Merger {
 public:
  explicit Merger(models::Model model) : old_(std::move(model)), new_(old_) {
    new_.graph.nodes.clear();
  }

  models::Model run(const std::vector<BranchSum>& sums) && {
    const Graph& graph = old_.graph;
    std::vector<const BranchSum*> at(graph.nodes.size());
    std::vector<bool> gone(graph.nodes.size());
    for (const BranchSum& sum : sums) {
      at[sum.sum] = &sum;
      for (NodeId id : sum.inner) gone[id] = true;
      for (const Branch& b : sum.branches) {
        gone[b.norm] = true;
        if (b.conv >= 0) gone[b.conv] = true;
      }
    }
    ids_.assign(graph.nodes.size(), -1);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (gone[i]) continue;
      if (at[i]) {
        ids_[i] = merge(*at[i]);
        continue;
      }
      Node node = graph.nodes[i];
      for (NodeId& input : node.inputs) input = ids_[input];
      ids_[i] = new_.graph.add(std::move(node));
    }
    new_.graph.input = ids_[graph.input];
    new_.graph.output = ids_[graph.output];
    return std::move(new_);
  }

 private:
  at::Tensor param(NodeId node, const char* role) const {
    return old_.parameters.at(old_.graph[node].params.at(role)).to(at::kDouble);
  }

  static at::Tensor identity_kernel(const at::Tensor& like) {
    auto weight = at::zeros_like(like);
    const auto outputs = at::arange(like.size(0), like.options().dtype(at::kLong));
    weight.index_put_(
        {outputs, outputs.remainder(like.size(1)), at::full_like(outputs, like.size(2) / 2),
         at::full_like(outputs, like.size(3) / 2)},
        at::ones_like(outputs, like.options()));
    return weight;
  }

  Linear folded(const Branch& branch, const at::Tensor& like) const {
    const double eps = models::get_if<models::BatchNorm>(old_.graph[branch.norm])->eps;
    const auto variance = param(branch.norm, "variance").clamp_min(0);
    const auto factor = param(branch.norm, "gamma").div(variance.add(eps).sqrt());
    auto offset = param(branch.norm, "mean").neg();
    at::Tensor weight = branch.conv < 0 ? identity_kernel(like) : param(branch.conv, "weight");
    if (branch.conv >= 0 && old_.graph[branch.conv].params.contains("bias"))
      offset = offset.add(param(branch.conv, "bias"));
    const auto rows = (like.size(2) - weight.size(2)) / 2,
               columns = (like.size(3) - weight.size(3)) / 2;
    weight = at::constant_pad_nd(weight, {columns, columns, rows, rows}, 0);
    return {weight.mul(factor.view({-1, 1, 1, 1})),
            factor.mul(offset).add(param(branch.norm, "beta")), factor.abs().mul(variance.sqrt())};
  }

  // Per channel of the tensor that the branches read, as each output channel's weights [out, in /
  // groups] see it.
  at::Tensor variance_seen(NodeId source, const at::Tensor& weight) const {
    models::Model before = new_;
    before.graph.input = ids_[old_.graph.input];
    before.graph.output = source;
    const auto moments = activation_moments(before.graph, before.parameters, {source});
    const auto variance = moments[0].variance.to(at::kDouble).mean({0, 2, 3});
    const auto groups = variance.size(0) / weight.size(1);
    return variance.view({groups, 1, -1})
        .expand({groups, weight.size(0) / groups, -1})
        .reshape({weight.size(0), -1});
  }

  static at::Tensor covariance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& seen) {
    const auto same = (a * b).sum({2, 3}), together = a.sum({2, 3}) * b.sum({2, 3});
    return (same * (1 - kNearCorrelation) + together * kNearCorrelation).mul(seen).sum(1);
  }

  at::Tensor variance_of_sum(const std::vector<Linear>& branches, NodeId source) const {
    const auto seen = variance_seen(source, branches[0].weight);
    auto independent = at::zeros_like(branches[0].deviation), sum = independent.clone();
    std::vector<at::Tensor> inferred;
    for (const Linear& b : branches)
      inferred.push_back(covariance(b.weight, b.weight, seen).clamp_min(1e-30).sqrt());
    for (std::size_t i = 0; i < branches.size(); ++i) {
      independent += branches[i].deviation.square();
      for (std::size_t j = 0; j < i; ++j)
        sum += covariance(branches[i].weight, branches[j].weight, seen)
                   .div(inferred[i] * inferred[j])
                   .mul(branches[i].deviation * branches[j].deviation)
                   .mul(2);
    }
    return (sum + independent).maximum(independent * kLeastShare).clamp_min(1e-12);
  }

  NodeId merge(const BranchSum& sum) {
    const NodeId first = sum.widest;
    const auto like = param(first, "weight");
    std::vector<Linear> branches;
    auto weight = at::zeros_like(like), constant = at::zeros({like.size(0)}, like.options());
    auto beta = constant.clone();
    for (const Branch& b : sum.branches) {
      branches.push_back(folded(b, like));
      weight += branches.back().weight;
      constant += branches.back().constant;
      beta += param(b.norm, "beta");
    }
    const auto variance = variance_of_sum(branches, ids_[sum.source]);
    const std::string& name = old_.graph[first].name;
    const std::string& total = old_.graph[sum.sum].name;
    const auto set = [&](const std::string& parameter, const at::Tensor& value) {
      new_.parameters.set(parameter, value.to(at::kFloat));
      return parameter;
    };
    const NodeId conv = new_.graph.add({name,
                                        old_.graph[first].op,
                                        {ids_[sum.source]},
                                        {{"weight", set(name + ".merged_weight", weight)}}});
    NodeId result = new_.graph.add({sum.rest.empty() ? total : total + ".merged",
                                    models::BatchNorm{0},
                                    {conv},
                                    {{"gamma", set(total + ".gamma", variance.sqrt())},
                                     {"beta", set(total + ".beta", beta)},
                                     {"mean", set(total + ".mean", beta - constant)},
                                     {"variance", set(total + ".variance", variance)}}});
    for (std::size_t i = 0; i < sum.rest.size(); ++i) {
      const bool last = i + 1 == sum.rest.size();
      result = new_.graph.add({last ? total : total + ".part" + std::to_string(i),
                               models::Add{},
                               {result, ids_[sum.rest[i]]}});
    }
    return result;
  }

  models::Model old_, new_;
  std::vector<NodeId> ids_;
};

}  // namespace

models::Model merge_branches(models::Model model) {
  const at::NoGradGuard no_grad;
  const auto sums = find_branch_sums(model);
  if (sums.empty()) return model;
  return Merger(std::move(model)).run(sums);
}

}  // namespace zsq::quant
