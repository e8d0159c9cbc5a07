// SPDX-License-Identifier: Apache-2.0
// The nodes of a file that no converter takes, where they come after the last convolution: they
// stay as they are (models/tail.h).
#pragma once
#include <exception>
#include <set>

#include "core/error.h"
#include "models/onnx/importer.h"
#include "models/onnx/tail_cost.h"

namespace zsq::models::onnx {

class TailBuilder {
 public:
  // `live`: the nodes that the outputs depend on, in the file's order.
  TailBuilder(const proto::Model& file, const std::vector<const proto::Node*>& live,
              const Importer& importer);

  // Whether a convolution comes after the node, which the tail must therefore not begin with.
  bool is_before_convolution(const proto::Node& node) const;
  // Whether the node reads what one in the tail gives.
  bool reaches(const proto::Node& node) const;
  // For a node that reaches() it, or that the importer refused with `error`. Rethrows where it
  // cannot stay: no layer is before it, or it is a convolution.
  void add(const proto::Node& node, const Error* error = nullptr);

  bool empty() const { return nodes_.empty(); }
  // What the graph gives for the tail, or as outputs of the file beside it.
  std::vector<FileOutput> finish();
  // After finish(). `again`: an importer that has taken no node of the file.
  void count_multiplications(Importer& again) {
    tail_.multiplications =
        multiplications_of(again, live_, [&](const auto& node) { return nodes_.contains(&node); });
  }
  const std::string& reason() const { return first_error_; }     // why the first node is in it
  std::string operators() const { return operators_of(tail_); }  // after finish()
  std::shared_ptr<const Tail> tail() && { return std::make_shared<const Tail>(std::move(tail_)); }

 private:
  void need(const std::string& first);
  bool has_row_per_image(const std::string& name);    // a constant
  const proto::Node* giver(const std::string& name);  // null: no node
  void expect_classes(const proto::Node& node);

  const proto::Model& file_;
  const std::vector<const proto::Node*>& live_;
  const Importer& importer_;
  std::set<const proto::Node*> nodes_;
  std::map<std::string, const proto::Node*> givers_;  // of the live nodes; made when asked for
  std::set<std::string> given_, needed_, constants_;  // by nodes of the tail; of the graph
  std::set<std::string> before_convolutions_;         // values that a convolution depends on
  std::map<std::string, std::int64_t> classes_;       // where the classes of a tensor are: its axis
  std::string first_error_;
  Tail tail_;
};

}  // namespace zsq::models::onnx
