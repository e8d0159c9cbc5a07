// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/tail_cost.h"

#include <numeric>

#include "core/error.h"

namespace zsq::models::onnx {
namespace {

double elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

class Counter {
 public:
  explicit Counter(Importer& importer) : importer_(importer) {}

  void add(const proto::Node& node) {
    const auto begun = importer_.graph().nodes.size();
    if (!convert(node) && !convert(of_same_shape(node))) stand_in(node);
    const Graph& graph = importer_.graph();
    for (auto id = static_cast<NodeId>(begun); id < static_cast<NodeId>(graph.nodes.size()); ++id)
      if (is<Linear>(graph[id]) || is<MatMul>(graph[id]))
        count_ += elements_of(importer_.shape(id)) *
                  static_cast<double>(importer_.shape(graph[id].inputs[0]).back());
  }

  bool convert(const proto::Node& node) {
    try {
      importer_.convert(node);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  double count() const { return count_; }

 private:
  // Another node whose result is as large.
  static proto::Node of_same_shape(proto::Node node) {
    static const std::map<std::string, std::string> kOthers{
        {"LpPool", "MaxPool"},
        {"GlobalLpPool", "GlobalMaxPool"},
        {"Hardmax", "Identity"},
        {"MeanVarianceNormalization", "Identity"},
        {"Shrink", "Identity"},
        {"Trilu", "Identity"},
        {"FastGelu", "Identity"},
        {"QuickGelu", "Identity"},
        {"SimplifiedLayerNormalization", "Identity"}};
    if (node.op_type == "Gemm" && node.inputs.size() > 2) node.inputs.resize(2);
    const auto other = kOthers.find(node.op_type);
    if (other == kOthers.end()) return node;
    node.domain.clear();
    node.op_type = other->second;
    std::erase_if(node.attributes, [](const auto& one) { return one.name == "p"; });
    if (node.op_type == "Identity") node.inputs.resize(1);
    return node;
  }

  // As the file sees it, for a batch of one; empty: not known.
  Shape shape_of(const proto::Node& node, std::size_t input) const {
    const auto* value = input < node.inputs.size() ? importer_.find(node.inputs[input]) : nullptr;
    if (!value) return {};
    if (value->constant.defined()) return value->constant.sizes().vec();
    if (value->node < 0 || (!value->is_plain() && !value->permuted)) return {};
    const Shape& shape = importer_.shape(value->node);
    if (!value->permuted) return shape;
    Shape seen;
    for (const auto axis : *value->permuted) seen.push_back(shape[static_cast<std::size_t>(axis)]);
    return seen;
  }
  static std::int64_t integer(const proto::Node& node, const char* name, std::int64_t otherwise) {
    const auto* attribute = node.find(name);
    const auto* value = attribute ? std::get_if<std::int64_t>(&attribute->value) : nullptr;
    return value ? *value : otherwise;
  }
  void give(const proto::Node& node, std::size_t output, const Shape& shape,
            std::optional<std::vector<std::int64_t>> order = {}) {
    if (output < node.outputs.size() && !node.outputs[output].empty())
      importer_.stand_in(node.outputs[output], shape, std::move(order));
  }

  void stand_in(const proto::Node& node) {
    if (!proto::is_default_domain(node.domain)) return;
    if (node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN") recurrent(node);
    if (node.op_type == "Attention") attention(node);
  }

  // W [directions, gates H, I] and R [directions, gates H, H] at each step of X [L, N, I], or with
  // `layout` [N, L, I].
  void recurrent(const proto::Node& node) {
    const auto x = shape_of(node, 0), w = shape_of(node, 1), r = shape_of(node, 2);
    if (x.size() != 3 || w.size() != 3 || r.size() != 3) return;
    const bool batch_first = integer(node, "layout", 0) != 0;
    const auto steps = batch_first ? x[1] : x[0], directions = r[0], hidden = r[2];
    count_ += static_cast<double>(steps) * (elements_of(w) + elements_of(r));
    const Shape last{1, directions, hidden};
    if (batch_first) {
      give(node, 0, {1, steps, directions, hidden});
      for (const std::size_t output : {1, 2}) give(node, output, last);
      return;
    }
    give(node, 0, {1, steps, directions, hidden}, std::vector<std::int64_t>{1, 2, 0, 3});
    for (const std::size_t output : {1, 2})
      give(node, output, last, std::vector<std::int64_t>{1, 0, 2});
  }

  // Q [N, L, heads D], K [N, S, heads D] and V, or with the heads before the places: Q K^T and the
  // weights times V.
  void attention(const proto::Node& node) {
    const auto q = shape_of(node, 0), k = shape_of(node, 1), v = shape_of(node, 2);
    if (q.size() < 3 || q.size() > 4 || k.size() != q.size() || v.size() != q.size()) return;
    const auto rank = q.size();
    const auto heads = rank == 4 ? q[1] : integer(node, "q_num_heads", 0);
    const auto of_values = rank == 4 ? v[1] : integer(node, "kv_num_heads", 0);
    if (heads < 1 || of_values < 1) return;
    const auto wide = rank == 4 ? v[3] : v[2] / of_values;  // of one head
    const auto products = elements_of(q) + static_cast<double>(heads * q[rank - 2] * wide);
    count_ += static_cast<double>(k[rank - 2]) * products;
    give(node, 0, rank == 4 ? Shape{1, heads, q[2], wide} : Shape{1, q[1], heads * wide});
  }

  Importer& importer_;
  double count_ = 0;
};

}  // namespace

double multiplications_of(Importer& importer, const std::vector<const proto::Node*>& nodes,
                          const std::function<bool(const proto::Node&)>& is_of_tail) {
  Counter counter(importer);
  for (const auto* node : nodes) {
    if (is_of_tail(*node))
      counter.add(*node);
    else
      counter.convert(*node);
  }
  return counter.count();
}

}  // namespace zsq::models::onnx
