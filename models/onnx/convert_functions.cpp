// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, element by element: one table from ONNX's operator to the graph's.
#include "models/elementwise.h"
#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

Op function(Function kind, double alpha = 1, double beta = 0) {
  return Elementwise{kind, alpha, beta};
}

struct Row {
  const char* type;
  Op (*op)(const Call&);
};

constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;

// Those with parameters of their own, or with a node of their own; every other one is in the table
// of models/elementwise.h under ONNX's name.
const Row kRows[] = {
    {"Celu", [](const Call& call) { return function(Function::celu, call.number("alpha", 1)); }},
    {"Elu", [](const Call& call) { return function(Function::elu, call.number("alpha", 1)); }},
    {"Gelu",
     [](const Call& call) -> Op {
       const auto form = call.text("approximate", "none");
       if (form == "none") return Gelu{};
       if (form != "tanh") call.fail("approximate = '" + form + "' is not known; none or tanh is");
       return function(Function::gelu_tanh);
     }},
    {"HardSigmoid",
     [](const Call& call) -> Op {
       return HardSigmoid{call.number("alpha", 0.2), call.number("beta", 0.5)};
     }},
    {"HardSwish", [](const Call&) -> Op { return HardSwish{}; }},
    {"LeakyRelu", [](const Call& call) -> Op { return LeakyRelu{call.number("alpha", 0.01)}; }},
    {"Mish", [](const Call&) { return function(Function::mish); }},
    {"Relu", [](const Call&) -> Op { return Clip{}; }},
    {"Selu",
     [](const Call& call) {
       return function(Function::selu, call.number("alpha", kSeluAlpha),
                       call.number("gamma", kSeluGamma));
     }},
    {"Sigmoid", [](const Call&) -> Op { return Sigmoid{}; }},
    {"ThresholdedRelu",
     [](const Call& call) {
       return function(Function::thresholded_relu, call.number("alpha", 1));
     }},
};

Op function_of(const Call& call) {
  const auto& type = call.node().op_type;
  for (const auto& row : kRows) {
    if (type == row.type) return row.op(call);
  }
  for (const auto& info : functions()) {
    if (type == info.onnx) return function(info.function);
  }
  call.fail("is no function of one tensor");
}

// Of a constant, by running a graph of one node.
at::Tensor evaluate(const Call& call, Op op, const at::Tensor& x) {
  Graph graph;
  graph.input_shape = {1, 1, x.numel()};
  graph.input = graph.add({"x", Input{}, {}});
  graph.output = graph.add({"y", std::move(op), {graph.input}});
  const bool floating = at::isFloatingType(x.scalar_type());
  const auto in = x.to(floating ? at::kFloat : at::kDouble).reshape({1, 1, 1, x.numel()});
  const auto y = execute(graph, {}, in);
  const auto batch = static_cast<double>(kBatch);
  if (in.eq(batch).logical_and(y.ne(batch)).any().item<bool>())
    call.fail(std::string("calculates with the batch size") + kExportWithFixedBatch);
  return y.reshape(x.sizes());
}

}  // namespace

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const auto& row : kRows) names.emplace_back(row.type);
  for (const auto& info : functions()) {
    if (!info.onnx.empty()) names.emplace_back(info.onnx);
  }
  return names;
}

void convert_function(Call& call) { emit_function(call, function_of(call), call.activation(0)); }

// Shapes and codes keep their type.
at::Tensor fold_function(const Call& call) {
  const auto& x = call.constant(0);
  const auto y = evaluate(call, function_of(call), x);
  return at::isFloatingType(x.scalar_type()) ? y : y.to(x.scalar_type());
}

// x sigmoid(alpha x)
void convert_swish(Call& call) {
  const auto x = call.activation(0);
  const auto map = map_before_channels_last(call.model().graph, x);
  const auto from = map < 0 ? x : map;
  auto scaled = from;
  if (const auto alpha = call.number("alpha", 1); alpha != 1)
    scaled = call.append(call.unique_name(), Mul{}, {from, call.made_up(alpha)});
  const auto gate = call.append(call.unique_name(), Sigmoid{}, {scaled});
  emit_on(call, Mul{}, {from, gate}, map >= 0);
}

}  // namespace zsq::models::onnx
