// SPDX-License-Identifier: Apache-2.0
// A row per built-in architecture; each family gives its own.
#pragma once
#include <functional>

#include "models/architectures/builder.h"

namespace zsq::models {

struct Architecture {
  ArchitectureInfo info;
  std::function<NodeId(Builder&)> logits;  // builds all nodes
};

std::vector<Architecture> densenets();
std::vector<Architecture> efficientnets();
std::vector<Architecture> mobilenets();
std::vector<Architecture> regnets();
std::vector<Architecture> resnets();
std::vector<Architecture> shufflenets();
std::vector<Architecture> vggs();

}  // namespace zsq::models
