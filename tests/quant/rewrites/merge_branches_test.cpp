// SPDX-License-Identifier: Apache-2.0
// Merged branches compute what the branches did, and their BatchNorm says what images show.
#include "quant/rewrites/merge_branches.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "quant/rewrites/parallel_branches.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::merge_branches_test {
namespace {

using models::NodeId;

std::int64_t count_convs(const models::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const auto& node) { return models::is<models::Conv2d>(node); });
}

// As MobileOne has them: `convs` convolutions 3 x 3, one 1 x 1 and the tensor itself, each with a
// BatchNorm, then ReLU.
NodeId unit(test::NetworkBuilder& net, const std::string& name, NodeId x, std::int64_t channels,
            std::int64_t groups, int convs) {
  NodeId sum = net.conv_bn(name + ".scale", x, channels, channels, 1, groups);
  const NodeId identity = net.batch_norm(name + ".identity", x, channels);
  sum = net.op(name + ".sum", models::Add{}, {sum, identity});
  for (int i = 0; i < convs; ++i) {
    const std::string branch = name + ".conv" + std::to_string(i);
    sum = net.op(branch + ".sum", models::Add{},
                 {sum, net.conv_bn(branch, x, channels, channels, 3, groups)});
  }
  return net.relu(name + ".relu", sum);
}

models::Model mobile_one(std::uint64_t seed) {
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(seed));
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 8);
  x = unit(net, "depthwise", x, 8, 8, 2);
  x = unit(net, "pointwise", x, 8, 1, 1);
  x = net.op("flat", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("head", x, 8, 5), 5);
}

// Every BatchNorm gets the moments that its input has for these images.
void measure(models::Model& model, const at::Tensor& images) {
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    if (!models::is<models::BatchNorm>(model.graph.nodes[i])) continue;
    models::Taps taps{{model.graph.nodes[i].inputs[0]}, {}};
    models::execute(model.graph, model.parameters, images, &taps);
    const auto& params = model.graph.nodes[i].params;
    model.parameters.at(params.at("mean")) = taps.values[0].mean(at::IntArrayRef{0, 2, 3});
    model.parameters.at(params.at("variance")) =
        taps.values[0].var(at::IntArrayRef{0, 2, 3}, false);
  }
}

TEST(MergeBranches, ComputesTheSame) {
  const auto model = mobile_one(5);
  const auto merged = merge_branches(model);
  EXPECT_EQ(count_convs(model.graph), 6);
  EXPECT_EQ(count_convs(merged.graph), 3);
  const auto images = test::normal({4, 3, 12, 12}, 1);
  const auto expected = models::execute(model.graph, model.parameters, images);
  const auto found = models::execute(merged.graph, merged.parameters, images);
  EXPECT_LT((found - expected).abs().max().item<double>(),
            1e-4 * expected.abs().max().item<double>());
  // What reads the sum finds it under its name, and the layers keep one of theirs.
  EXPECT_TRUE(
      models::is<models::BatchNorm>(merged.graph[merged.graph.id_of("depthwise.conv1.sum")]));
  EXPECT_TRUE(models::is<models::Conv2d>(merged.graph[merged.graph.id_of("depthwise.conv0")]));
}

// Strided branches have no identity; what is no branch stays a summand; a second reader of a
// branch, an even kernel and a pad that moves windows forbid it.
TEST(MergeBranches, LeavesWhatOneConvolutionCannotCompute) {
  test::NetworkBuilder net({4, 12, 12}, test::varied_parameters(2));
  const NodeId x = net.relu("map", net.batch_norm("map.bn", net.input(), 4));
  const auto conv = [&](const std::string& name, std::int64_t kernel, models::Conv2d op) {
    return net.batch_norm(name + ".bn", net.conv(name, x, {4, 4, kernel, kernel}, op), 4);
  };
  const NodeId two =
      net.op("two", models::Add{}, {conv("a", 3, {{2, 2}, {1, 1, 1, 1}}), conv("b", 1, {{2, 2}})});
  const NodeId pooled = net.op("pooled", models::AvgPool{{2, 2}, {2, 2}}, {x});
  const NodeId three = net.op("three", models::Add{}, {pooled, two});
  const auto model = net.finish(net.conv("last", net.relu("relu", three), 4, 4));
  const auto merged = merge_branches(model);
  EXPECT_EQ(count_convs(merged.graph), 2);
  EXPECT_TRUE(models::is<models::Add>(merged.graph[merged.graph.id_of("three")]));
  const auto images = test::normal({2, 4, 12, 12}, 3);
  EXPECT_TRUE(models::execute(merged.graph, merged.parameters, images)
                  .allclose(models::execute(model.graph, model.parameters, images), 1e-3, 1e-4));

  for (const models::Conv2d& off :
       {models::Conv2d{{1, 1}, {0, 0, 2, 2}}, models::Conv2d{{1, 1}, {2, 2, 2, 2}, {2, 2}}}) {
    test::NetworkBuilder other({4, 12, 12}, test::varied_parameters(2));
    const NodeId y =
        other.batch_norm("bn", other.conv("conv", other.input(), {4, 4, 3, 3}, off), 4);
    const NodeId z = other.conv_bn("one", other.input(), 4, 4, 1);
    EXPECT_TRUE(find_branch_sums(other.finish(other.op("sum", models::Add{}, {y, z}))).empty());
  }
}

// Branches that agree: independent, their sum would have a variance of 2 gamma^2, not nearly 4.
TEST(MergeBranches, KnowsTheVarianceOfTheSum) {
  test::NetworkBuilder net({6, 8, 8}, test::varied_parameters(4));
  const NodeId x = net.relu("map", net.batch_norm("map.bn", net.input(), 6));
  const NodeId conv = net.conv_bn("conv", x, 6, 6, 1);
  const NodeId identity = net.batch_norm("identity", x, 6);
  auto model = net.finish(net.op("sum", models::Add{}, {conv, identity}));
  auto& weight = model.parameters.at("conv.weight");
  weight.mul_(0.3).add_(at::eye(6).view({6, 6, 1, 1}));
  const auto images = test::normal({400, 6, 8, 8}, 6);
  measure(model, images);
  const auto seen = models::execute(model.graph, model.parameters, images);
  const auto variance = seen.var(at::IntArrayRef{0, 2, 3}, false);
  const auto merged = merge_branches(model);
  const auto& node = merged.graph[merged.graph.output];
  const auto gamma = merged.parameters.at(node.params.at("gamma"));
  EXPECT_LT((gamma.square() / variance - 1).abs().max().item<double>(), 0.1);
  EXPECT_TRUE(merged.parameters.at(node.params.at("beta"))
                  .allclose(seen.mean(at::IntArrayRef{0, 2, 3}), 1e-2, 1e-2));
  const auto independent = model.parameters.at("conv.bn.gamma").square() +
                           model.parameters.at("identity.gamma").square();
  EXPECT_GT((variance / independent - 1).abs().max().item<double>(), 0.3);
}

// A student of such a network has one layer for all branches, and its ranges hold what images show.
TEST(MergeBranches, GivesStudentsRangesThatHold) {
  auto model = mobile_one(7);
  const auto images = test::normal({64, 3, 12, 12}, 8);
  measure(model, images);
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  options.activations.range = ActivationRange::bn_statistics;
  Student student = test::quantized(model, options);
  EXPECT_EQ(weight_sites(student).size(), 4U);
  calibrate(student, [] { return at::Tensor(); });
  const auto expected = models::execute(model.graph, model.parameters, images);
  const auto found = models::execute(student.graph, student.parameters, images);
  const auto centred = [](const at::Tensor& y) { return y - y.mean(at::IntArrayRef{0}, true); };
  const auto a = centred(found), b = centred(expected);
  EXPECT_GT(((a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()).item<double>(), 0.99);
}

}  // namespace
}  // namespace zsq::quant::merge_branches_test
