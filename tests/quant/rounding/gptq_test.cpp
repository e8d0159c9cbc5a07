// SPDX-License-Identifier: Apache-2.0
// Moments against plain sums, and the outputs of layers before and after.
#include "quant/rounding/gptq.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "models/execute.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/rounding/gptq_layer.h"
#include "quant/rounding/squant.h"
#include "tests/quant/net.h"

namespace zsq::quant {
namespace {

const QuantizerSpec kSpec = weight_spec(3, false, Mode::deploy);

models::Node convolution(std::int64_t groups) {
  return {"conv", models::Conv2d{{2, 1}, {0, 1, 1, 1}, {1, 1}, groups}, {0}, {}};
}

// Channels that go together, and places that do.
at::Tensor smooth_images(std::int64_t channels, std::uint64_t seed) {
  const auto common = test::normal({6, 1, 9, 9}, seed);
  auto x = test::normal({6, channels, 9, 9}, seed + 1).mul(0.4).add(common).relu();
  return x.add(x.roll(1, 2)).add(x.roll(1, 3));
}

at::Tensor output(std::int64_t groups, const at::Tensor& x, const at::Tensor& weight) {
  const auto padded = at::constant_pad_nd(x, {1, 1, 0, 1});
  return at::conv2d(padded, weight, {}, {2, 1}, at::IntArrayRef{0, 0}, {1, 1}, groups);
}

InputMoments moments_of(std::int64_t groups, const at::Tensor& x, const at::Tensor& x_hat,
                        const at::Tensor& weight) {
  InputMomentsSum sum(convolution(groups), weight, 1000, 1);
  sum.add(x.narrow(0, 0, 4), x_hat.narrow(0, 0, 4));
  sum.add(x.narrow(0, 4, 2), x_hat.narrow(0, 4, 2));
  return sum.moments();
}

at::Tensor codes_of(const at::Tensor& weight, const at::Tensor& scale,
                    const at::Tensor& zero_point) {
  return cuda_kernels::quantize(weight, scale, zero_point, kSpec.qmin, kSpec.qmax);
}

at::Tensor on_grid(const at::Tensor& weight, const at::Tensor& scale,
                   const at::Tensor& zero_point) {
  const auto rows = [](const at::Tensor& t) { return t.view({-1, 1, 1, 1}); };
  return codes_of(weight, scale, zero_point).to(at::kFloat).sub(rows(zero_point)).mul(rows(scale));
}

// Mean square of what is left of an error of the output when each channel's mean is taken out.
double spread(const at::Tensor& error) {
  return error.sub(error.mean({0, 2, 3}, true)).square().mean().item<double>();
}

TEST(InputMoments, AreThoseOfTheOutputsOfUnitKernels) {
  for (const std::int64_t groups : {1, 4}) {
    const auto x = smooth_images(4, 1).add(20),
               x_hat = x.add(test::normal(x.sizes().vec(), 3, 0.3f));
    const std::int64_t in = 4 / groups, k = in * 9;
    const auto got = moments_of(groups, x, x_hat, at::zeros({groups, in, 3, 3}));
    for (std::int64_t g = 0; g < groups; ++g) {
      // A kernel that is 1 at one place gives that place's values.
      const auto unit = at::eye(k).view({k, in, 3, 3});
      const auto patches = [&](const at::Tensor& t) {
        const auto y = output(1, t.narrow(1, g * in, in), unit).to(at::kDouble);
        const auto rows = y.transpose(0, 1).reshape({k, -1});
        return rows.sub(rows.mean(1, true));
      };
      const auto a = patches(x), b = patches(x_hat);
      const auto n = static_cast<double>(a.size(1));
      const auto near = [](const at::Tensor& p, const at::Tensor& q) {
        return p.sub(q).abs().max().item<double>() < 2e-3;
      };
      EXPECT_TRUE(near(got.quantized[g], at::matmul(b, b.t()).div(n)));
      EXPECT_TRUE(near(got.mixed[g], at::matmul(a, b.t()).div(n)));
      EXPECT_TRUE(near(got.variance[g], a.square().mean(1)));
    }
  }
}

TEST(InputMoments, TakeTheVarianceThatIsKnown) {
  const auto x = smooth_images(4, 1);
  auto quiet = x.clone();
  quiet.select(1, 2).fill_(0.5);  // says nothing: only padding shows
  const auto moments = moments_of(4, x, x, at::zeros({4, 1, 3, 3}));
  const auto known = at::full({4}, 7, at::kDouble);
  const auto scaled = with_variance(moments, known);
  EXPECT_LT(scaled.variance.mean(1).sub(7).abs().max().item<double>(), 1e-9);
  for (std::int64_t g = 0; g < 4; ++g) {
    const auto factor = 7 / moments.variance[g].mean().item<double>();
    EXPECT_TRUE(scaled.quantized[g].allclose(moments.quantized[g].mul(factor)));
    EXPECT_TRUE(scaled.mixed[g].allclose(moments.mixed[g].mul(factor)));
  }
}

TEST(Gptq, ALayersOutputChangesLessThanByNearestRoundingAndBySquant) {
  GptqOptions options;
  options.damping = 1e-3;
  for (const std::int64_t groups : {1, 6}) {
    const auto x = smooth_images(6, 5);
    const auto w = test::normal({12, 6 / groups, 3, 3}, 7);
    const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
    const auto rounded = round_layer_by_gptq(w, moments_of(groups, x, x, w), grid, kSpec, options);
    const auto error = [&](const at::Tensor& latent, const at::Tensor& scale) {
      return spread(output(groups, x, on_grid(latent, scale, grid.zero_point).sub(w)));
    };
    const double ours = error(rounded.latent, rounded.scale);
    EXPECT_LT(ours, 0.7 * error(w, grid.scale)) << groups;
    EXPECT_LT(ours, 0.8 * error(squant(w, grid, kSpec, false), grid.scale)) << groups;
    const auto codes = codes_of(rounded.latent, rounded.scale, grid.zero_point);
    // No latent weight lies so near to a threshold that a rounding error could change its code.
    EXPECT_TRUE(codes.equal(codes_of(on_grid(rounded.latent, rounded.scale, grid.zero_point),
                                     rounded.scale, grid.zero_point)));
    EXPECT_LT(rounded.latent.sub(on_grid(rounded.latent, rounded.scale, grid.zero_point))
                  .abs()
                  .div(rounded.scale.view({-1, 1, 1, 1}))
                  .max()
                  .item<float>(),
              0.5 - 1.0 / 128);
  }
}

TEST(Gptq, DriftIsMadeGood) {
  const auto x = smooth_images(6, 5), x_hat = x.mul(0.8);
  const auto w = test::normal({12, 6, 3, 3}, 7);
  const auto spec = weight_spec(8, false, Mode::deploy);
  const auto grid = weight_grid(w.mul(1.3), spec, true, WeightRange::min_max);
  GptqOptions options;
  options.damping = 1e-4;
  const auto moments = moments_of(1, x, x_hat, w);
  const auto error = [&](double drift) {
    options.error_compensation = drift;
    const auto rounded = round_layer_by_gptq(w, moments, grid, spec, options);
    return spread(output(1, x_hat, rounded.latent).sub(output(1, x, w)));
  };
  EXPECT_LT(error(1), 0.01 * error(0));
}

TEST(Gptq, ADeadInputChangesNothing) {
  const auto w = test::normal({8, 6, 3, 3}, 7);
  const auto grid = weight_grid(w, kSpec, true, WeightRange::mse);
  const auto fives = smooth_images(6, 5);
  auto x = fives.clone();
  x.select(1, 2).zero_();
  const auto rounded = round_layer_by_gptq(w, moments_of(1, x, x, w), grid, kSpec, {});
  const auto codes = codes_of(rounded.latent, rounded.scale, grid.zero_point);
  // Its own weights are rounded to nearest, on the grid that was found.
  EXPECT_TRUE(codes.select(1, 2).equal(codes_of(w, rounded.scale, grid.zero_point).select(1, 2)));
  // Those of the others are what they are without it.
  const auto without = [](const at::Tensor& t) {
    return at::cat({t.narrow(1, 0, 2), t.narrow(1, 3, 3)}, 1);
  };
  GptqOptions options;  // the mean square is over fewer inputs
  options.damping *= 5.0 / 6;
  const auto alone = round_layer_by_gptq(
      without(w), moments_of(1, without(x), without(x), without(w)), grid, kSpec, options);
  const auto same = alone.scale.eq(rounded.scale);
  EXPECT_GT(same.sum().item<int>(), 3);
  const auto others = codes_of(alone.latent, alone.scale, grid.zero_point);
  EXPECT_TRUE(others.index({same}).equal(without(codes).index({same})));
  // Nothing is known at all: nearest rounding.
  const auto blind = round_layer_by_gptq(w, moments_of(1, x.mul(0), x.mul(0), w), grid, kSpec, {});
  EXPECT_TRUE(codes_of(blind.latent, blind.scale, grid.zero_point)
                  .equal(codes_of(w, blind.scale, grid.zero_point)));
}

// A student whose weights are rounded on images; with what is reported of blocks.
struct Rounding {
  explicit Rounding(const models::Model& network,
                    BiasCorrection bias_correction = BiasCorrection::bn_statistics)
      : teacher(network) {
    QuantOptions options;
    options.weights.rounding = WeightRounding::gptq;
    options.activations.range = ActivationRange::bn_statistics;
    options.bias_correction = bias_correction;
    student = insert_quantizers(teacher, options);
    calibrate(student, [] { return at::Tensor(); });
  }
  GptqJob job() {
    return {.teacher = teacher, .student = student, .images = test::normal({12, 3, 12, 12}, 5)};
  }
  void run(Observer& observer) { round_weights_by_gptq(job(), observer); }
  void run() {
    Observer observer;
    run(observer);
  }
  models::Model teacher;
  Student student;
};

TEST(Gptq, RoundsAStudentAndCorrectsItsBias) {
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

TEST(Gptq, LeavesBiasesWhereTheyAreNotToBeCorrected) {
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
  test::Net net;
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
TEST(Gptq, LayersThatShareAWeightShareWhatIsDecided) {
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

struct StopAt : Observer {
  void on_progress(const Progress&) override { ++seen; }
  bool stop_requested() override { return seen == layer; }
  std::int64_t layer = -1, seen = 0;
};

TEST(Gptq, GoesOnToTheSameResult) {
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
    EXPECT_THROW(round_weights_by_gptq(job, stop), Error);
    EXPECT_EQ(done, static_cast<std::size_t>(layer < 4 ? layer : layer - 1));
    Rounding second(sharing_network());
    for (const auto& name : kept.names()) second.student.parameters.set(name, kept.at(name));
    auto rest = second.job();
    rest.blocks_done = done;
    Observer silent;
    round_weights_by_gptq(rest, silent);
    for (const auto& name : unbroken.student.parameters.names())
      EXPECT_TRUE(second.student.parameters.at(name).equal(unbroken.student.parameters.at(name)))
          << name;
  }
}

}  // namespace
}  // namespace zsq::quant
