// SPDX-License-Identifier: Apache-2.0
#include "models/tail.h"

#include <set>

namespace zsq::models {

std::string operators_of(const Tail& tail) {
  std::set<std::string> types;
  for (const auto& node : tail.nodes) types.insert(node.op_type);
  std::string list;
  for (const auto& type : types) list += (list.empty() ? "" : ", ") + type;
  return list;
}

}  // namespace zsq::models
