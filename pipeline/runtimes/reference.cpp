// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/reference.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logit.h>

#include <cmath>

#include "core/error.h"
#include "losses/divergence.h"
#include "models/file_layout.h"
#include "pipeline/session/session.h"
#include "quant/placement.h"
#include "quant/student.h"

namespace zsq::pipeline {
namespace {

using models::NodeId;
using models::OutputFunction;

constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kInOtherOrder = 16;  // images: libtorch's own convolutions take seconds each
constexpr double kSteps = 1.01;       // that a runtime may be off anywhere: one code, and floats
constexpr double kTimesRounding = 3;  // in the mean square
constexpr double kSmallest = 1e-5;    // of the largest output, where no step is known
// Where functions of the output are flat in f32, outputs before them are not compared.
constexpr double kLeastLogarithm = -27, kLargestScore = 8;

// Convolutions by libtorch's own kernels, which sum in another order than oneDNN's.
class OtherOrder {
 public:
  OtherOrder() : before_(at::globalContext().userEnabledMkldnn()) {
    at::globalContext().setUserEnabledMkldnn(false);
  }
  ~OtherOrder() { at::globalContext().setUserEnabledMkldnn(before_); }
  OtherOrder(const OtherOrder&) = delete;
  OtherOrder& operator=(const OtherOrder&) = delete;

 private:
  bool before_;
};

at::Tensor in_rows(const at::Tensor& outputs) {
  return outputs.reshape({outputs.size(0), -1}).contiguous();
}

// As before_function() gives them. `axis`: of the classes.
at::Tensor as_from_file(OutputFunction function, const at::Tensor& outputs, std::int64_t axis) {
  switch (function) {
    case OutputFunction::softmax:
    case OutputFunction::log_softmax:
      return at::log_softmax(outputs, axis).clamp_min(kLeastLogarithm);
    case OutputFunction::sigmoid:
      return outputs.clamp(-kLargestScore, kLargestScore);
    case OutputFunction::none:
      break;
  }
  return outputs;
}

at::Tensor before_function(OutputFunction function, const at::Tensor& file_outputs) {
  switch (function) {
    case OutputFunction::softmax:
      return at::log(file_outputs).clamp_min(kLeastLogarithm);
    case OutputFunction::log_softmax:
      return file_outputs.clamp_min(kLeastLogarithm);
    case OutputFunction::sigmoid:
      return at::logit(file_outputs, 1 / (1 + std::exp(kLargestScore)));
    case OutputFunction::none:
      break;
  }
  return file_outputs;
}

// `part` of each output of the row [N, K], joined again; of one output without places of the row.
template <class Part>
at::Tensor output_by_output(const models::Signature& file, const at::Tensor& row, Part part) {
  if (file.kind.outputs().empty()) return part(row, file.function, /*axis=*/1);
  auto parts = models::parts_of(file.kind, row);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& output = file.kind.outputs()[i];
    parts[i] = part(parts[i], output.function, output.axis).reshape({row.size(0), -1});
  }
  return at::cat(parts, 1);
}

at::Tensor outputs_of(const models::Model& model, const at::Tensor& images, const char* phase,
                      Observer& observer) {
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < images.size(0); first += kBatch) {
    if (observer.stop_requested()) throw Error(ErrorCode::stopped, "stopped");
    const auto n = std::min(kBatch, images.size(0) - first);
    parts.push_back(infer(model.graph, model.parameters, images.narrow(0, first, n)));
    observer.on_progress({phase, first + n, images.size(0), 0, {}});
  }
  return in_rows(output_by_output(
      model.graph.signature, at::cat(parts),
      [](const auto& x, auto function, auto axis) { return as_from_file(function, x, axis); }));
}

const at::Tensor* weight_of(const models::Model& model, const models::Node& layer) {
  const auto named = [&](const models::Node& node, const char* role) -> const at::Tensor* {
    const auto name = node.params.find(role);
    const bool found = name != node.params.end() && model.parameters.contains(name->second);
    return found ? &model.parameters.at(name->second) : nullptr;
  };
  if (layer.inputs.size() < 2) return named(layer, "weight");
  const models::Node& weight = model.graph[layer.inputs[1]];
  return models::is<models::Parameter>(weight) ? named(weight, "value") : nullptr;
}

double scale_of(const models::Model& model, const quant::ActivationQuantizer& quantizer) {
  const bool known = model.parameters.contains(quantizer.scale_name());
  return known ? model.parameters.at(quantizer.scale_name()).item<double>() : 0;
}

// The first quantizer or layer before `id` on the path of first inputs; negative: none.
NodeId last_before(const models::Graph& graph, NodeId id) {
  while (!quant::is_layer(graph[id]) && !quant::activation_quantizer(graph[id])) {
    if (graph[id].inputs.empty()) return -1;
    id = graph[id].inputs[0];
  }
  return id;
}

// Some rows, spread over all.
at::Tensor some_of(const at::Tensor& rows, std::int64_t count) {
  const std::int64_t every = std::max<std::int64_t>(1, rows.size(0) / count);
  return rows.slice(0, 0, rows.size(0), every).narrow(0, 0, std::min(count, rows.size(0)));
}

}  // namespace

OutputDifference difference_of(const models::Graph& graph, const at::Tensor& a,
                               const at::Tensor& b) {
  const at::Tensor off = (b - a).to(at::kDouble);
  return {losses::agreement(graph.signature.kind, b, a).item<double>(),
          off.abs().max().item<double>(), std::sqrt(off.square().mean().item<double>())};
}

bool Reference::explains(const OutputDifference& difference) const {
  const double anywhere = step > 0 ? kSteps * step : kSmallest * magnitude;
  // What is not finite is larger than anything.
  return difference.largest <= anywhere || difference.rms <= kTimesRounding * rounding.rms;
}

at::Tensor before_last_function(const models::Graph& graph, const at::Tensor& file_outputs) {
  return output_by_output(graph.signature, file_outputs, [](const auto& x, auto function, auto) {
    return before_function(function, x);
  });
}

double output_step(const models::Model& model) {
  const models::Graph& graph = model.graph;
  if (!graph.signature.kind.outputs().empty()) return 0;  // each has a step of its own
  const NodeId last = last_before(graph, graph.output);
  if (last < 0) return 0;
  if (const auto* quantizer = quant::activation_quantizer(graph[last]))
    return scale_of(model, *quantizer);
  const NodeId before = last_before(graph, graph[last].inputs[0]);
  const auto* quantizer = before < 0 ? nullptr : quant::activation_quantizer(graph[before]);
  const at::Tensor* weight = weight_of(model, graph[last]);
  return quantizer && weight ? scale_of(model, *quantizer) * weight->abs().max().item<double>() : 0;
}

namespace {

// The network with the scales of its activations a few units in the last place larger: runtimes
// multiply a sum of codes by the quotient of three scales, each of which is rounded.
models::Model with_other_thresholds(models::Model model) {
  constexpr double kUnitsInTheLastPlace = 4 * 0x1p-23;
  models::ParameterStore moved = model.parameters;
  for (const auto& node : model.graph.nodes)
    if (const auto* quantizer = quant::activation_quantizer(node);
        quantizer && moved.contains(quantizer->scale_name()))
      moved.set(quantizer->scale_name(),
                model.parameters.at(quantizer->scale_name()).mul(1 + kUnitsInTheLastPlace));
  model.parameters = std::move(moved);
  return model;
}

}  // namespace

Reference make_reference(models::Model model, at::Tensor images, Observer& observer) {
  Reference reference{std::move(model), std::move(images), {}, 0, 0, {}};
  reference.outputs = outputs_of(reference.model, reference.images, "reference", observer);
  reference.step = output_step(reference.model);
  reference.magnitude = reference.outputs.abs().max().item<double>();
  const auto& graph = reference.model.graph;
  reference.rounding = difference_of(
      graph, reference.outputs,
      outputs_of(with_other_thresholds(reference.model), reference.images, "thresholds", observer));
  const OtherOrder order;
  const auto in_other_order = difference_of(
      graph, some_of(reference.outputs, kInOtherOrder),
      outputs_of(reference.model, some_of(reference.images, kInOtherOrder), "rounding", observer));
  if (in_other_order.rms > reference.rounding.rms) reference.rounding = in_other_order;
  return reference;
}

}  // namespace zsq::pipeline
