// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/tail_builder.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <ranges>

namespace zsq::models::onnx {
namespace {

bool is_layer(const Node& node) { return is<Conv2d>(node) || is<Linear>(node); }

bool is_convolution(const proto::Node& node) {
  return proto::is_default_domain(node.domain) &&
         (node.op_type == "Conv" || node.op_type == "ConvTranspose");
}

bool has_batch(const at::Tensor& constant) {
  return constant.scalar_type() == at::kLong && constant.eq(kBatch).any().item<bool>();
}

}  // namespace

TailBuilder::TailBuilder(const proto::Model& file, const std::vector<const proto::Node*>& live,
                         const Importer& importer)
    : file_(file), live_(live), importer_(importer) {
  for (const auto* node : std::views::reverse(live))
    if (is_convolution(*node) || is_before_convolution(*node))
      for (auto& name : node->reads()) before_convolutions_.insert(std::move(name));
}

bool TailBuilder::is_before_convolution(const proto::Node& node) const {
  return std::ranges::any_of(node.outputs, [&](const std::string& name) {
    return !name.empty() && before_convolutions_.contains(name);
  });
}

bool TailBuilder::reaches(const proto::Node& node) const {
  return std::ranges::any_of(node.reads(),
                             [&](const std::string& name) { return given_.contains(name); });
}

void TailBuilder::add(const proto::Node& node, const Error* error) {
  if (error) {
    const bool takes = error->code() == ErrorCode::unsupported_model &&
                       std::ranges::any_of(importer_.graph().nodes, is_layer);
    if (!takes) throw Error(*error);
    if (first_error_.empty()) first_error_ = error->what();
    first_error_ = first_error_.substr(0, first_error_.find(". Known: "));
  }
  if (is_convolution(node))
    throw Error(ErrorCode::unsupported_model,
                first_error_ + "; what follows could stay in float if there were no " +
                    node.op_type + " '" + node.name + "' after it");
  nodes_.insert(&node);
  given_.insert(node.outputs.begin(), node.outputs.end());
  given_.erase("");
  expect_classes(node);
}

void TailBuilder::expect_classes(const proto::Node& node) {
  const bool decides = proto::is_default_domain(node.domain) &&
                       (node.op_type == "ArgMax" || node.op_type == "Hardmax");
  if (!decides || node.inputs.empty()) return;
  const auto* attribute = node.find("axis");
  const auto* axis = attribute ? std::get_if<std::int64_t>(&attribute->value) : nullptr;
  classes_[node.inputs.at(0)] = axis ? *axis : node.op_type == "ArgMax" ? 0 : -1;
}

std::vector<FileOutput> TailBuilder::finish() {
  for (const auto& output : file_.graph.outputs) need(output.name);
  // Nodes that only bring forward sizes with the batch join the tail as they are needed, which
  // adds to nodes_.
  const auto begun = std::vector<const proto::Node*>(nodes_.begin(), nodes_.end());
  for (const auto* node : begun)
    for (const auto& name : node->reads()) need(name);
  std::vector<FileOutput> read;
  std::set<std::string> seen;
  const auto read_once = [&](const std::string& name) {
    if (!needed_.contains(name) || !seen.insert(name).second) return;
    const auto classes = classes_.find(name);
    read.push_back(
        {name, name, classes == classes_.end() ? std::nullopt : std::optional(classes->second)});
  };
  for (const auto* node : live_) {
    if (!nodes_.contains(node)) continue;
    tail_.nodes.push_back(*node);
    for (const auto& name : node->reads()) read_once(name);
  }
  for (const auto& output : file_.graph.outputs) read_once(output.name);
  tail_.outputs = file_.graph.outputs;
  tail_.opset = file_.opset;
  for (const auto& node : tail_.nodes) {
    // What a sub-graph holds is not known here.
    if (!node.subgraphs().empty()) tail_.domains = file_.domains;
    if (const auto found = file_.domains.find(node.domain); found != file_.domains.end())
      tail_.domains.insert(*found);
  }
  tail_.batch = importer_.fixed_batch();
  return read;
}

// A list instead of recursion: files of strangers hold chains of any length.
void TailBuilder::need(const std::string& first) {
  std::vector<std::string> pending{first};
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name.empty() || given_.contains(name) || name == importer_.input_name()) continue;
    const auto* value = importer_.find(name);
    if (value && value->constant.defined() && !has_batch(value->constant) &&
        !has_row_per_image(name)) {
      if (constants_.insert(name).second)
        tail_.constants.emplace_back(name, to_array(value->constant));
    } else if (value && value->is_plain()) {
      needed_.insert(name);
    } else {
      const auto* node = giver(name);
      if (!node)
        throw Error(ErrorCode::bad_input,
                    "'" + name + "' is read, but nothing before it produces it");
      nodes_.insert(node);
      given_.insert(node->outputs.begin(), node->outputs.end());
      for (auto& input : node->reads()) pending.push_back(std::move(input));
    }
  }
}

// The importer keeps one row of such constants, which is not what a runtime would make.
bool TailBuilder::has_row_per_image(const std::string& name) {
  const auto* node = giver(name);
  return node && (node->op_type == "ConstantOfShape" || node->op_type == "Expand") &&
         std::ranges::any_of(node->inputs, [&](const std::string& input) {
           const auto* value = importer_.find(input);
           return value && value->constant.defined() && has_batch(value->constant);
         });
}

const proto::Node* TailBuilder::giver(const std::string& name) {
  if (givers_.empty())
    for (const auto* node : live_)
      for (const auto& output : node->outputs) givers_.emplace(output, node);
  const auto found = givers_.find(name);
  return found == givers_.end() ? nullptr : found->second;
}

}  // namespace zsq::models::onnx
