// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/round_layers.h"

#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

// A student whose weights are rounded on images; with what is reported of blocks.
struct Rounding {
  explicit Rounding(const models::Model& network,
                    BiasCorrection bias_correction = BiasCorrection::bn_statistics)
      : teacher(network) {
    QuantOptions options;
    options.weights.rounding = WeightRounding::gptq;
    options.activations.range = ActivationRange::bn_statistics;
    options.bias_correction = bias_correction;
    student = test::quantized(teacher, options);
    calibrate(student, [] { return at::Tensor(); });
  }
  RoundingJob job() {
    return {.teacher = teacher,
            .student = student,
            .method = rounding_method(student.options.weights.rounding),
            .images = test::normal({12, 3, 12, 12}, 5)};
  }
  void run(Observer& observer) { round_layers(job(), observer); }
  void run() {
    Observer observer;
    run(observer);
  }
  models::Model teacher;
  Student student;
};

TEST(RoundLayers, RoundAStudentAndCorrectItsBias) {
  Rounding r(test::residual_network());
  const auto before = r.student.parameters.clone();
  r.run();
  const auto& parameters = r.student.parameters;
  const auto sites = weight_sites(r.student);
  for (const auto& site : sites) {
    EXPECT_FALSE(parameters.at(site.parameter).equal(before.at(site.parameter)));
    EXPECT_TRUE(
        parameters.at(site.op->zero_point_name()).equal(before.at(site.op->zero_point_name())));
  }
  // The last layer reads pooled values with means that BatchNorm tells: by hand.
  const auto& last = sites.back();
  const auto input = infer_layer_inputs(r.student, r.teacher).back();
  const auto quantized = at::matmul(last.op->forward({parameters.at(last.parameter)}, parameters),
                                    input.quantized_mean.flatten());
  const auto exact = at::matmul(r.teacher.parameters.at("fc.weight"), input.mean.flatten());
  const auto expected = r.teacher.parameters.at("fc.bias").sub(quantized).add(exact);
  EXPECT_TRUE(parameters.at("fc.bias").allclose(expected, 1e-4, 1e-5));
}

TEST(RoundLayers, LeaveBiasesWhereTheyAreNotToBeCorrected) {
  Rounding r(test::residual_network(), BiasCorrection::none);
  r.run();
  for (const auto& name : r.teacher.parameters.names())
    if (!name.ends_with("weight")) {
      EXPECT_TRUE(r.student.parameters.at(name).equal(r.teacher.parameters.at(name))) << name;
    }
}

// The blocks: two convolutions, a residual block, a convolution and the classifier. "b" and "c",
// and two convolutions of the residual block, share a weight.
models::Model sharing_network() {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  const auto conv = [&](const std::string& name, const std::string& weight) {
    x = net.op(name, models::Conv2d{.pads = {1, 1, 1, 1}}, {x}, {{"weight", weight}});
    x = net.relu(name + ".relu", net.batch_norm(name + ".bn", x, 8));
  };
  x = net.conv_bn_relu("b", x, 8, 8);
  conv("c", "b.weight");
  const auto entry = x;
  x = net.conv_bn_relu("d", x, 8, 8);
  conv("e", "d.weight");
  x = net.op("pool", models::GlobalAvgPool{}, {net.op("add", models::Add{}, {x, entry})});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 8, 10));
}

// The codes of all that share a weight are those that the first of them was given.
TEST(RoundLayers, ThatShareAWeightShareWhatIsDecided) {
  Rounding r(sharing_network());
  r.run();
  std::map<std::string, at::Tensor> quantized;
  for (const auto& site : weight_sites(r.student)) {
    const auto w =
        site.op->forward({r.student.parameters.at(site.parameter)}, r.student.parameters);
    const auto [found, first] = quantized.emplace(site.parameter, w);
    if (!first) {
      EXPECT_TRUE(w.equal(found->second)) << site.parameter;
    }
  }
  EXPECT_EQ(quantized.size(), 4U);
}

// A linear layer that reads tokens [N, 16, 8] has its channels last.
TEST(RoundLayers, RoundLinearLayersOfTokens) {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("stem", net.input(), 3, 8);
  x = net.op("pool", models::MaxPool{{3, 3}, {3, 3}}, {x});
  x = net.op("tokens", models::Transpose{{0, 2, 1}},
             {net.op("places", models::Reshape{{8, 16}}, {x})});
  x = net.relu("relu", net.linear("wide", x, 8, 12));
  x = net.op("mean", models::Reduce{models::ReduceKind::mean, {1}, false}, {x});
  Rounding r(net.finish(net.linear("fc", x, 12, 10)));
  const auto images = r.job().images;
  const auto error = [&] {
    const at::NoGradGuard no_grad;
    const auto exact = models::execute(r.teacher.graph, r.teacher.parameters, images);
    return models::execute(r.student.graph, r.student.parameters, images)
        .sub(exact)
        .square()
        .mean()
        .item<double>();
  };
  const auto before = error();
  r.run();
  EXPECT_LT(error(), before);
}

struct StopAt : Observer {
  void on_progress(const Progress&) override { ++seen; }
  bool stop_requested() override { return seen == layer; }
  std::int64_t layer = -1, seen = 0;
};

TEST(RoundLayers, GoOnToTheSameResult) {
  Rounding unbroken(sharing_network());
  unbroken.run();
  for (const std::int64_t layer : {1, 2, 4, 5}) {  // after the fourth, half of a block is done
    Rounding first(sharing_network());
    models::ParameterStore kept;
    std::size_t done = 0;
    auto job = first.job();
    job.on_block_done = [&](std::size_t blocks) {
      done = blocks;
      kept = first.student.parameters.clone();
    };
    StopAt stop;
    stop.layer = layer;
    EXPECT_THROW(round_layers(job, stop), Error);
    EXPECT_EQ(done, static_cast<std::size_t>(layer < 4 ? layer : layer - 1));
    Rounding second(sharing_network());
    for (const auto& name : kept.names()) second.student.parameters.set(name, kept.at(name));
    auto rest = second.job();
    rest.blocks_done = done;
    Observer silent;
    round_layers(rest, silent);
    for (const auto& name : unbroken.student.parameters.names())
      EXPECT_TRUE(second.student.parameters.at(name).equal(unbroken.student.parameters.at(name)))
          << name;
  }
}

}  // namespace
}  // namespace zsq::quant
