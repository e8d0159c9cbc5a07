// SPDX-License-Identifier: Apache-2.0
// Nodes of a file that leaves height or width open and calculates with them.
#pragma once
#include <map>

#include "exporters/onnx_builder.h"
#include "exporters/plan.h"
#include "exporters/qdq_form.h"

namespace zsq::exporters {

// What comes after a node and has the shape of its value, from which that may be read: a quantizer
// where there is one, as runtimes fuse a layer with it only if nothing else reads between them.
models::NodeId with_shape_of(const Plan& plan, const std::map<models::NodeId, CodeTensor>& codes,
                             models::NodeId id);

// Closes both sides if a form leaves more than one dimension of a Reshape open, which none can say.
void close_unless_all_follow(models::Signature& file);

struct Resized {
  const models::Node& node;
  const models::Interpolate& op;
  std::string x;
  std::string like_x;   // a tensor of x's shape
  std::string like_it;  // one whose height and width the result has; empty: op.size
};
std::string write_resized(OnnxBuilder& builder, const Resized& resized);

// The matrix [N tokens, features] as [N, ..., features]; `like`: a tensor with these dimensions but
// the last.
std::string as_tokens(OnnxBuilder& builder, const std::string& name, const std::string& matrix,
                      const std::string& like, std::int64_t features);

}  // namespace zsq::exporters
