// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/parallel_branches.h"

#include <algorithm>
#include <optional>

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;

class Finder {
 public:
  explicit Finder(const models::Model& model)
      : model_(model), graph_(model.graph), consumers_(graph_.consumers()) {}

  std::vector<BranchSum> find() const {
    std::vector<BranchSum> found;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (!models::is<models::Add>(graph_[id]) || is_inner(id)) continue;
      BranchSum sum;
      sum.sum = id;
      std::vector<NodeId> leaves;
      collect(id, sum, leaves);
      if (choose(leaves, sum)) found.push_back(std::move(sum));
    }
    return found;
  }

 private:
  bool has_one_reader(NodeId id) const { return id != graph_.output && consumers_[id].size() == 1; }
  bool is_inner(NodeId id) const {
    return has_one_reader(id) && models::is<models::Add>(graph_[consumers_[id][0]]);
  }

  void collect(NodeId id, BranchSum& sum, std::vector<NodeId>& leaves) const {
    for (NodeId input : graph_[id].inputs) {
      if (models::is<models::Add>(graph_[input]) && is_inner(input)) {
        sum.inner.push_back(input);
        collect(input, sum, leaves);
      } else {
        leaves.push_back(input);
      }
    }
  }

  static bool is_centred(const models::Conv2d& op, const at::Tensor& weight) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto kernel = weight.size(2 + axis), half = kernel / 2;
      if (kernel % 2 == 0 || op.pads[axis] != half || op.pads[axis + 2] != half ||
          (kernel > 1 && op.dilation[axis] != 1))
        return false;
    }
    return true;
  }

  std::optional<Branch> branch(NodeId norm) const {
    if (!models::is<models::BatchNorm>(graph_[norm]) || !has_one_reader(norm)) return std::nullopt;
    const NodeId before = graph_[norm].inputs[0];
    const auto* op = models::get_if<models::Conv2d>(graph_[before]);
    if (!op || !has_one_reader(before) || graph_[before].inputs.size() != 1 ||
        !is_centred(*op, weight(before)))
      return Branch{norm, -1};
    return Branch{norm, before};
  }

  NodeId source_of(const Branch& branch) const {
    return graph_[branch.conv < 0 ? branch.norm : branch.conv].inputs[0];
  }

  // The most branches that go with one convolution.
  bool choose(const std::vector<NodeId>& leaves, BranchSum& sum) const {
    std::vector<std::optional<Branch>> branches;
    for (NodeId leaf : leaves) branches.push_back(branch(leaf));
    for (const auto& widest : branches) {
      if (!widest || widest->conv < 0) continue;
      std::vector<Branch> together;
      for (const auto& other : branches)
        if (other && go_together(*widest, *other)) together.push_back(*other);
      if (together.size() < 2 || together.size() <= sum.branches.size()) continue;
      sum.branches = std::move(together);
      sum.widest = widest->conv;
      sum.source = source_of(*widest);
    }
    for (NodeId leaf : leaves)
      if (std::ranges::find(sum.branches, leaf, &Branch::norm) == sum.branches.end())
        sum.rest.push_back(leaf);
    return !sum.branches.empty();
  }

  const at::Tensor& weight(NodeId conv) const {
    return model_.parameters.at(graph_[conv].params.at("weight"));
  }

  bool go_together(const Branch& widest, const Branch& other) const {
    if (source_of(widest) != source_of(other)) return false;
    const auto& a = *models::get_if<models::Conv2d>(graph_[widest.conv]);
    const auto& kernel = weight(widest.conv);
    if (other.conv < 0)
      return a.stride == models::Pair{1, 1} && kernel.size(0) == kernel.size(1) * a.groups;
    const auto& b = *models::get_if<models::Conv2d>(graph_[other.conv]);
    const auto& smaller = weight(other.conv);
    return a.stride == b.stride && a.groups == b.groups && smaller.size(2) <= kernel.size(2) &&
           smaller.size(3) <= kernel.size(3);
  }

  const models::Model& model_;
  const Graph& graph_;
  std::vector<std::vector<NodeId>> consumers_;
};

}  // namespace

std::vector<BranchSum> find_branch_sums(const models::Model& model) { return Finder(model).find(); }

}  // namespace zsq::quant
