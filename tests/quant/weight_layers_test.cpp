// SPDX-License-Identifier: Apache-2.0
// All weights at once against each quantizer by itself, in whole networks.
#include "quant/weight_layers.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/execute.h"
#include "models/load.h"
#include "quant/pair_bound.h"
#include "tests/support/network_builder.h"
#include "tests/support/networks.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

// A quantizer's value by the single operators.
class Alone : public models::CustomOp {
 public:
  explicit Alone(const WeightQuantizer* op) : op_(op) {}
  std::string kind() const override { return "alone"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto& spec = op_->spec();
    cuda_kernels::Grid grid;
    if (op_->range_every_step()) {
      const auto rows =
          inputs[0].detach().reshape({op_->per_channel() ? inputs[0].size(0) : 1, -1});
      const auto [lo, hi] = cuda_kernels::channel_min_max(rows);
      grid = cuda_kernels::grid_from_range(lo, hi, spec.qmin, spec.qmax, spec.symmetric);
    } else {
      grid = {parameters.at(op_->scale_name()), parameters.at(op_->zero_point_name())};
    }
    return cuda_kernels::fake_quant(keep_pairs(inputs[0], grid, spec), grid.scale, grid.zero_point,
                                    spec.qmin, spec.qmax, spec.surrogate);
  }

 private:
  const WeightQuantizer* op_;
};

models::Graph with_quantizers_alone(models::Graph graph) {
  for (auto& node : graph.nodes) {
    const auto* custom = models::get_if<models::Custom>(node);
    const auto* op = custom ? dynamic_cast<const WeightQuantizer*>(custom->op.get()) : nullptr;
    if (op) node.op = models::Custom{std::make_shared<Alone>(op)};
  }
  return graph;
}

// Logits, and the gradients of all weights and of those scales that can learn.
std::vector<at::Tensor> pass(const models::Graph& graph, const models::ParameterStore& store,
                             const at::Tensor& x, const std::vector<at::Tensor>& parameters) {
  const auto logits = models::execute(graph, store, x);
  auto results = torch::autograd::grad({logits.square().sum()}, parameters);
  results.push_back(logits.detach());
  return results;
}

void expect_same(const models::Model& teacher, const QuantOptions& options) {
  auto student = test::quantized(teacher, options);
  const auto sites = weight_sites(student);
  std::vector<at::Tensor> parameters;
  for (const auto& site : sites) {
    parameters.push_back(student.parameters.at(site.parameter).requires_grad_(true));
    if (!options.weights.range_every_step)
      parameters.push_back(student.parameters.at(site.op->scale_name()).requires_grad_(true));
  }
  const auto& [c, h, w] = student.graph.input_shape;
  const auto x = test::normal({2, c, h, w}, 1);
  const auto fused = fuse_activations(student.graph);
  const auto at_once =
      pass(take_quantized_weights(fused), with_quantized_weights(student, sites), x, parameters);
  const auto alone = pass(with_quantizers_alone(fused), student.parameters, x, parameters);
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(at_once[i], alone[i])) << i;
  for (const auto& site : sites) {
    const auto& weight = student.parameters.at(site.parameter);
    const auto quantized = site.op->forward({weight}, student.parameters);
    EXPECT_TRUE(at::equal(quantized, Alone(site.op).forward({weight}, student.parameters)));
  }
}

std::vector<QuantOptions> all_options() {
  std::vector<QuantOptions> all;
  for (const Mode mode : {Mode::paper, Mode::deploy}) {
    for (const bool every_step : {true, false}) {
      for (const bool per_channel : {true, false}) {
        QuantOptions options;
        options.mode = mode;
        options.weights.range_every_step = every_step;
        options.weights.per_channel = per_channel;
        options.weights.symmetric = mode == Mode::deploy ? Symmetry::yes : Symmetry::no;
        all.push_back(options);
      }
    }
  }
  return all;
}

TEST(WeightLayers, ANetworkOfEveryKindOfLayer) {
  test::NetworkBuilder net({3, 8, 8});
  auto x = net.conv_bn_relu("stem", net.input(), 3, 8);
  x = net.conv_bn_relu("depthwise", x, 8, 8, 3, 8);
  x = net.conv_bn_relu("grouped", x, 8, 12, 3, 2);
  x = net.conv_bn_relu("pointwise", x, 12, 16, 1);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  const auto teacher = net.finish(net.linear("fc", x, 16, 10));
  for (const auto& options : all_options()) expect_same(teacher, options);
}

TEST(WeightLayers, AMobileNet) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto teacher = models::load(test::network_path("mobilenet_v2_w35.onnx"));
  for (const auto& options : all_options()) expect_same(teacher, options);
}

}  // namespace
}  // namespace zsq::quant
