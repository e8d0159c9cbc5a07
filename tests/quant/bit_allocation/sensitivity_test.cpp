// SPDX-License-Identifier: Apache-2.0
#include "quant/bit_allocation/sensitivity.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/round.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/rounding/gptq.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

QuantOptions plain_options() {
  QuantOptions options;
  options.weights.range = WeightRange::min_max;
  options.activations.range = ActivationRange::min_max;
  return options;
}

double divergence(const at::Tensor& teacher, const at::Tensor& student) {
  const auto p = at::log_softmax(teacher.to(at::kDouble), 1);
  const auto s = at::log_softmax(student.to(at::kDouble), 1);
  return (p.exp() * (p - s)).sum(1).mean().item<double>();
}

at::Tensor logits(const models::Model& model, const at::Tensor& images) {
  return models::execute(model.graph, model.parameters, images);
}

// Per-channel asymmetric rounding, written out.
at::Tensor rounded(const at::Tensor& weight, std::int64_t bits) {
  const auto rows = weight.flatten(1);
  const auto lo = rows.amin(1).clamp_max(0), hi = rows.amax(1).clamp_min(0);
  const double codes = double((1 << bits) - 1), low = -double(1 << (bits - 1));
  const auto scale = ((hi - lo) / codes).unsqueeze(1);
  const auto zero = at::round(low - lo.unsqueeze(1) / scale);
  const auto q = (at::round(rows / scale) + zero).clamp(low, low + codes);
  return ((q - zero) * scale).view(weight.sizes());
}

TEST(Sensitivity, WeightsOfOneLayerAlone) {
  const models::Model teacher = test::residual_network();
  const at::Tensor images = test::normal({20, 3, 12, 12}, 5);  // more than one batch
  Observer silent;
  const auto rows = measure_sensitivity({teacher, plain_options(), images, 2, 5, false}, silent);
  ASSERT_EQ(rows.size(), 5u);
  const at::Tensor expected = logits(teacher, images);
  for (const LayerSensitivity& row : rows) {
    EXPECT_EQ(row.end, row.layer == "stem" || row.layer == "fc");
    EXPECT_TRUE(row.input_sensitivity.empty());
    ASSERT_EQ(row.weight_sensitivity.size(), 4u);
    for (const auto& [bits, sensitivity] : row.weight_sensitivity) {
      models::Model changed = teacher;
      const std::string weight = row.layer + ".weight";
      EXPECT_EQ(row.weights, changed.parameters.at(weight).numel());
      changed.parameters.set(weight, rounded(changed.parameters.at(weight), bits));
      const double wanted = divergence(expected, logits(changed, images));
      EXPECT_NEAR(sensitivity, wanted, 1e-3 * wanted + 1e-9) << row.layer << " at " << bits;
    }
  }
}

// The student in which everything else passes through: no scale, nothing rounded.
TEST(Sensitivity, InputOfOneLayerAlone) {
  const models::Model teacher = test::residual_network();
  const at::Tensor images = test::normal({8, 3, 12, 12}, 6);
  Observer silent;
  const auto rows = measure_sensitivity({teacher, plain_options(), images, 3, 4, true}, silent);
  const at::Tensor expected = logits(teacher, images);
  for (const LayerSensitivity& row : rows) {
    if (row.layer == "stem") {
      EXPECT_TRUE(row.input_sensitivity.empty());  // the image has bits of its own
      continue;
    }
    ASSERT_EQ(row.input_sensitivity.size(), 2u) << row.layer;
    QuantOptions options = plain_options();
    options.activations.num_bits = 4;
    options.first_last_bits = 0;
    options.activations.calibration_images = 8;
    Student student = test::quantized(teacher, options);
    calibrate(student, [&] { return images; });
    models::ParameterStore parameters = teacher.parameters.clone();
    const auto input = student.graph[student.graph.id_of(row.layer)].inputs[0];
    const auto* op = activation_quantizer(student.graph[input]);
    const auto keep_grid = [&](const Quantizer& quantizer) {
      for (const auto& name : {quantizer.scale_name(), quantizer.zero_point_name()})
        parameters.set(name, student.parameters.at(name));
    };
    keep_grid(*op);
    for (const WeightSite& site : weight_sites(student)) {
      keep_grid(*site.op);  // its result is read by no layer
      student.graph[site.layer].inputs[1] = student.graph[site.quantizer].inputs[0];
    }
    const double wanted = divergence(expected, models::execute(student.graph, parameters, images));
    EXPECT_GT(wanted, 0);
    EXPECT_NEAR(row.input_sensitivity.at(4), wanted, 1e-3 * wanted + 1e-9) << row.layer;
    EXPECT_GT(row.input_sensitivity.at(3), row.input_sensitivity.at(4)) << row.layer;
  }
}

// Second-order rounding, from moments that are summed up here.
TEST(Sensitivity, WeightsAreRoundedAsTheStudentsWillBe) {
  const models::Model teacher = test::residual_network();
  const at::Tensor images = test::normal({20, 3, 12, 12}, 5),
                   others = test::normal({24, 3, 12, 12}, 8);
  QuantOptions options = plain_options();
  options.weights.rounding = WeightRounding::gptq;
  Observer silent;
  const auto rows = measure_sensitivity({teacher, options, images, 3, 3, false, others}, silent);
  options.weights.num_bits = 3;
  options.first_last_bits = 0;
  const Student student = test::quantized(teacher, options);
  const auto known = infer_layer_inputs(student, teacher);
  const auto sites = weight_sites(student);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto id = teacher.graph.id_of(student.graph[sites[i].layer].name);
    const auto& node = teacher.graph[id];
    models::Taps taps;
    taps.nodes = {node.inputs[0]};
    models::execute(teacher.graph, teacher.parameters, others, &taps);
    const auto& weight = teacher.parameters.at(sites[i].parameter);
    InputMomentsSum sum(node, weight, /*positions: all*/ 1000, /*seed=*/7);
    for (const auto& x : taps.values[0].split(16)) sum.add(x, x);
    const auto variance = known[i].variance;
    const auto moments = with_variance(
        sum.moments(),
        (variance.dim() == 4 ? variance.mean({0, 2, 3}) : variance.flatten()).to(at::kDouble));
    auto grid = sites[i].op->grid(weight, student.parameters);
    const auto rounded =
        round_layer_by_gptq(weight, moments, grid, sites[i].op->spec(), options.gptq);
    models::Model changed = teacher;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
    shape[0] = -1;
    const auto scale = rounded.scale.view(shape), zero = grid.zero_point.view(shape);
    changed.parameters.set(
        sites[i].parameter,
        (at::round(rounded.latent / scale) + zero).clamp(-4, 3).sub(zero).mul(scale));
    const double wanted = divergence(logits(teacher, images), logits(changed, images));
    EXPECT_NEAR(rows[i].weight_sensitivity.at(3), wanted, 1e-2 * wanted) << node.name;
  }
}

// What a student starts with is what is measured: with SQuant and corrected biases it is nearer.
TEST(Sensitivity, FollowsTheStartOfTheStudent) {
  const models::Model teacher = test::residual_network();
  const at::Tensor images = test::normal({64, 3, 12, 12}, 7);
  QuantOptions better = plain_options();
  better.weights.range = WeightRange::mse;
  Observer silent;
  const auto sum = [&](const QuantOptions& options) {
    double sensitivity = 0;
    for (const auto& row : measure_sensitivity({teacher, options, images, 3, 3, false}, silent))
      sensitivity += row.weight_sensitivity.at(3);
    return sensitivity;
  };
  const double plain = sum(plain_options()), mse = sum(better);
  EXPECT_NE(mse, plain);
  better.bias_correction = BiasCorrection::bn_statistics;
  better.weights.rounding = WeightRounding::squant;
  EXPECT_NE(sum(better), mse);
  better.equalize = Equalization::all;
  EXPECT_GT(sum(better), 0);
}

TEST(Sensitivity, StopsWhereItIsAsked) {
  struct Stop : Observer {
    bool stop_requested() override { return true; }
  } stop;
  const models::Model teacher = test::residual_network();
  try {
    measure_sensitivity({teacher, plain_options(), test::normal({2, 3, 12, 12}, 8)}, stop);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
  }
}

}  // namespace
}  // namespace zsq::quant
