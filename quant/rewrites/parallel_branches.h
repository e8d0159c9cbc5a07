// SPDX-License-Identifier: Apache-2.0
// Linear functions of one tensor that are added, each with a BatchNorm of its own.
#pragma once
#include <vector>

#include "models/graph.h"

namespace zsq::quant {

struct Branch {
  models::NodeId norm = -1, conv = -1;  // conv -1: the BatchNorm reads the tensor itself
};

struct BranchSum {
  models::NodeId sum = -1;            // the last Add
  models::NodeId source = -1;         // what the branches read
  models::NodeId widest = -1;         // a convolution whose kernel covers those of the others
  std::vector<models::NodeId> inner;  // other Adds of the sum
  std::vector<Branch> branches;       // at least two
  std::vector<models::NodeId> rest;   // what else is added
};

// Sums of branches that one convolution can compute: kernels are odd and not dilated, padding keeps
// windows centred, stride and groups are alike, and nothing else reads a branch.
std::vector<BranchSum> find_branch_sums(const models::Model& model);

}  // namespace zsq::quant
