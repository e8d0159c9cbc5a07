// SPDX-License-Identifier: Apache-2.0
// Einsum of one or two tensors as sums over dimensions, transpositions and one product of matrices.
#include <ATen/ops/sum.h>

#include <algorithm>
#include <numeric>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// An input: a tensor with the batch first, or a constant, and a letter for each dimension.
struct Term {
  std::string labels;
  NodeId node = -1;
  at::Tensor constant = {};

  Dims sizes(const Call& call) const {
    return node >= 0 ? call.shape(node) : constant.sizes().vec();
  }
  std::int64_t size(const Call& call, char label) const { return sizes(call)[labels.find(label)]; }
};

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

Equation parse(const Call& call) {
  auto text = call.text("equation", "");
  std::erase(text, ' ');
  const auto arrow = text.find("->");
  if (text.find('.') != std::string::npos) call.fail("an ellipsis is not known");
  Equation equation;
  std::string left = text.substr(0, arrow);
  for (std::size_t start = 0; start <= left.size();) {
    const auto end = std::min(left.find(',', start), left.size());
    equation.terms.push_back(left.substr(start, end - start));
    start = end + 1;
  }
  if (arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    return equation;
  }
  std::erase(left, ',');  // the letters that occur once, in the alphabet's order
  std::ranges::sort(left);
  for (const char label : left)
    if (std::ranges::count(left, label) == 1) equation.result += label;
  return equation;
}

Term read(Call& call, std::size_t input, const std::string& labels) {
  Term term{labels};
  if (call.is_constant(input))
    term.constant = call.constant(input).to(at::kFloat);
  else
    term.node = call.activation(input);
  if (term.sizes(call).size() != labels.size())
    call.fail("a letter for each dimension was expected in '" + labels + "'");
  for (const char label : labels)
    if (std::ranges::count(labels, label) > 1) call.fail("a diagonal is not known");
  return term;
}

// Sums over the dimensions whose letters are in neither.
void sum_others(Call& call, Term& term, const std::string& other, const std::string& result) {
  Dims axes;
  std::string left;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const char label = term.labels[i];
    const bool kept = has(other, label) || has(result, label);
    if (kept) left += label;
    if (!kept) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return;
  if (term.node >= 0 && axes[0] == 0) call.fail("sums over the batch");
  if (term.node >= 0)
    term.node = call.part(Reduce{ReduceKind::sum, axes, false}, {term.node});
  else
    term.constant = term.constant.sum(axes);
  term.labels = left;
}

NodeId transposed(Call& call, NodeId x, const std::string& labels, const std::string& order) {
  if (labels == order) return x;
  Dims perm;
  for (const char label : order) perm.push_back(static_cast<std::int64_t>(labels.find(label)));
  return call.part(Transpose{perm}, {x});
}

std::int64_t elements(const Call& call, const Term& term, const std::string& labels) {
  std::int64_t product = 1;
  for (const char label : labels) product *= term.size(call, label);
  return product;
}

// [N, matrices, rows, columns] of the letters of each; of a constant N is 1.
NodeId matrices(Call& call, const Term& term, const std::string& batch, const std::string& same,
                const std::string& rows, const std::string& columns) {
  Dims shape{elements(call, term, same), elements(call, term, rows), elements(call, term, columns)};
  if (term.node >= 0) {
    const auto x = transposed(call, term.node, term.labels, batch + same + rows + columns);
    return call.part(Reshape{shape}, {x});
  }
  Dims perm;
  for (const char label : same + rows + columns)
    perm.push_back(static_cast<std::int64_t>(term.labels.find(label)));
  shape.insert(shape.begin(), 1);
  return call.made_up(term.constant.permute(perm).reshape(shape));
}

void emit_product(Call& call, Term& a, Term& b, const std::string& result) {
  const auto batch = result.substr(0, 1);
  const auto starts = [&](const Term& term) {
    return term.node >= 0 ? term.labels.starts_with(batch) : !has(term.labels, batch[0]);
  };
  if (!starts(a) || !starts(b)) call.fail("the batch must be the first dimension of all");
  sum_others(call, a, b.labels, result);
  sum_others(call, b, a.labels, result);
  std::string same, rows, columns, inner;
  Dims shape;
  for (const char label : result.substr(1))
    (has(a.labels, label) ? (has(b.labels, label) ? same : rows) : columns) += label;
  for (const char label : a.labels)
    if (label != batch[0] && !has(result, label)) inner += label;
  for (const char label : same + inner)
    if (a.size(call, label) != b.size(call, label))
      call.contradict(std::string("the dimensions '") + label + "' differ in size");
  const auto left = matrices(call, a, batch, same, rows, inner);
  const auto right = matrices(call, b, batch, same, inner, columns);
  auto y = call.part(MatMul{}, {left, right});
  for (const char label : same + rows) shape.push_back(a.size(call, label));
  for (const char label : columns) shape.push_back(b.size(call, label));
  y = shape.size() == 1 ? call.part(Flatten{}, {y}) : call.part(Reshape{shape}, {y});
  call.bind({transposed(call, y, batch + same + rows + columns, result), {}});
}

}  // namespace

void convert_einsum(Call& call) {
  const auto [terms, result] = parse(call);
  const bool fits = terms.size() == call.inputs() && (terms.size() == 1 || terms.size() == 2);
  if (!fits) call.fail("one or two tensors were expected");
  for (const char label : result)
    if (std::ranges::count(result, label) > 1 ||
        std::ranges::none_of(terms, [&](const auto& term) { return has(term, label); }))
      call.fail("the result '" + result + "' does not follow from the inputs");
  auto a = read(call, 0, terms[0]);
  if (terms.size() == 1) {
    if (!result.starts_with(a.labels.substr(0, 1))) call.fail("the batch must stay first");
    sum_others(call, a, "", result);
    return call.bind({transposed(call, a.node, a.labels, result), {}});
  }
  auto b = read(call, 1, terms[1]);
  if (result.size() < 2) call.fail("nothing is left of an image");
  emit_product(call, a, b, result);
}

}  // namespace zsq::models::onnx
