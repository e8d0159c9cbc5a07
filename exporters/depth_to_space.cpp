// SPDX-License-Identifier: Apache-2.0
#include "exporters/depth_to_space.h"

namespace zsq::exporters {
namespace {

using models::NodeId;
using Dims = std::vector<std::int64_t>;

// From the last node of a chain to its first.
class Chain {
 public:
  Chain(const quant::Student& student, const Plan& plan, NodeId last)
      : student_(student), plan_(plan), at_(last) {}

  NodeId at() const { return at_; }
  const std::vector<NodeId>& inside() const { return inside_; }

  // To the operator before, over a quantizer. False: others read what is in between, or it has
  // another grid.
  bool step_back() {
    if (!take(input())) return false;
    const auto* quantizer = calibrated_quantizer(student_, at_);
    if (!quantizer) return true;
    if (!scale_.empty() && scale_ != quantizer->scale_name()) return false;
    scale_ = quantizer->scale_name();
    return take(input());
  }

  NodeId input() const { return student_.graph[at_].inputs[0]; }

  bool input_fits() const {
    const auto* quantizer = calibrated_quantizer(student_, input());
    return scale_.empty() || (quantizer && quantizer->scale_name() == scale_);
  }

 private:
  bool take(NodeId id) {
    if (plan_.consumers[id].size() != 1 || id == student_.graph.output) return false;
    at_ = id;
    inside_.push_back(id);
    return true;
  }

  const quant::Student& student_;
  const Plan& plan_;
  NodeId at_;
  std::vector<NodeId> inside_;
  std::string scale_;
};

}  // namespace

std::optional<DepthToSpace> depth_to_space(const quant::Student& student, const Plan& plan,
                                           NodeId last) {
  const auto& graph = student.graph;
  const auto* spread = models::get_if<models::Reshape>(graph[last]);
  if (!spread || spread->shape.size() != 3) return {};
  Chain chain(student, plan, last);
  if (!chain.step_back()) return {};
  const auto* moved = models::get_if<models::Transpose>(graph[chain.at()]);
  if (!moved || !chain.step_back()) return {};
  const auto* split = models::get_if<models::Reshape>(graph[chain.at()]);
  if (!split || split->shape.size() != 5 || !chain.input_fits()) return {};
  const bool crd = moved->perm == Dims{0, 1, 4, 2, 5, 3};
  if (!crd && moved->perm != Dims{0, 3, 4, 1, 5, 2}) return {};
  const auto& s = split->shape;
  const auto channels = s[crd ? 0 : 2], block = s[crd ? 1 : 0];
  if (s[crd ? 2 : 1] != block || spread->shape != Dims{channels, s[3] * block, s[4] * block})
    return {};
  return DepthToSpace{chain.input(), crd ? "CRD" : "DCR", block, chain.inside()};
}

}  // namespace zsq::exporters
