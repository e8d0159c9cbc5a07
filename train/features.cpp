// SPDX-License-Identifier: Apache-2.0
#include "train/features.h"

#include <algorithm>

namespace zsq::train {

std::vector<models::NodeId> same_nodes(const models::Graph& student, const models::Graph& teacher,
                                       const std::vector<models::NodeId>& nodes) {
  std::vector<models::NodeId> same;
  for (const auto id : nodes) {
    const auto& name = teacher[id].name;
    const bool there = std::any_of(student.nodes.begin(), student.nodes.end(),
                                   [&](const models::Node& node) { return node.name == name; });
    same.push_back(student.id_of(there ? name : name + ".quantizer"));
  }
  return same;
}

}  // namespace zsq::train
