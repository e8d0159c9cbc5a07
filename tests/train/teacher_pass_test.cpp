// SPDX-License-Identifier: Apache-2.0
#include "train/teacher_pass.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/network_builder.h"
#include "train/parameters.h"

namespace zsq::train {
namespace {

using models::NodeId;

// A BatchNorm that two nodes read, a sum of two BatchNorms, a clip with an upper end, and a
// BatchNorm over [N, C].
models::Model many_forms() {
  test::NetworkBuilder net;
  const NodeId stem = net.conv_bn("stem", net.input(), 3, 8);
  NodeId x = net.op("relu6", models::Clip{0, 6}, {stem});
  const NodeId a = net.conv_bn("a", x, 8, 8), shortcut = net.conv_bn("shortcut", x, 8, 8);
  x = net.relu("sum.relu", net.op("sum", models::Add{}, {a, shortcut}));
  const NodeId b = net.conv_bn("b", x, 8, 8);
  x = net.op("sum2", models::Add{}, {b, stem});  // no clip after it
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  x = net.relu("fc1.relu", net.batch_norm("fc1.bn", net.linear("fc1", x, 8, 6), 6));
  return net.finish(net.linear("fc2", x, 6, 4));
}

struct Seen {
  at::Tensor logits, loss, gradient;
};

template <class Run>
Seen see(const models::Model& teacher, const at::Tensor& input, const Run& run) {
  const auto images = input.detach().clone().requires_grad_(true);
  const auto [logits, moments] = run(images);
  const auto loss = losses::batch_norm_statistics(moments, running_moments(teacher));
  const auto total = logits.square().sum().add(loss);
  return {logits.detach(), loss.detach(), torch::autograd::grad({total}, {images})[0]};
}

// A clip with bounds of its own for each channel.
models::Model bounded_channels() {
  test::NetworkBuilder net;
  NodeId x = net.conv_bn("stem", net.input(), 3, 4);
  net.model().parameters.set("lower", at::linspace(-0.5, 0.5, 4).view({1, 4, 1, 1}));
  net.model().parameters.set("upper", at::linspace(0.75, 2, 4).view({1, 4, 1, 1}));
  x = net.op("clip", models::Clip{0, 6}, {x}, {{"lower", "lower"}, {"upper", "upper"}});
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  return net.finish(net.linear("fc", x, 4, 3));
}

// Expansion, depthwise convolution and projection, with a shortcut and without.
models::Model inverted_bottlenecks() {
  test::NetworkBuilder net;
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 4);
  for (const std::string name : {"first", "second"}) {
    const NodeId begin = x;
    x = net.conv_bn_relu(name + ".expand", x, 4, 12, 1);
    x = net.conv_bn_relu(name + ".depthwise", x, 12, 12, 3, 12);
    x = net.conv_bn(name + ".project", x, 12, 4, 1);
    if (name == "second") x = net.op(name + ".sum", models::Add{}, {x, begin});
  }
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  return net.finish(net.linear("fc", x, 4, 3));
}

TEST(TeacherPass, GivesWhatTheTeacherGivesAndTheMomentsOfEveryBatchNorm) {
  for (const auto& teacher : {test::residual_network(), many_forms(), bounded_channels()}) {
    const auto input = test::normal({6, 3, 12, 12}, 5);
    const auto plain = see(teacher, input, [&](const at::Tensor& images) {
      models::Taps taps{models::batch_norm_inputs(teacher.graph), {}};
      auto logits = models::execute(teacher.graph, teacher.parameters, images, &taps);
      return TeacherPass::Result{std::move(logits), losses::batch_moments(taps.values)};
    });
    const TeacherPass pass(teacher.graph, teacher.parameters);
    const auto fused = see(teacher, input, [&](const at::Tensor& images) { return pass(images); });
    EXPECT_TRUE(at::allclose(fused.logits, plain.logits, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(fused.loss, plain.loss, 1e-4));
    EXPECT_TRUE(at::allclose(fused.gradient, plain.gradient, 1e-3, 1e-5));
  }
}

// Blocks that are computed again give every bit of the gradient that kept values give.
TEST(TeacherPass, RecomputesBlocksWithoutChangingABit) {
  for (const auto& teacher :
       {test::residual_network(), many_forms(), bounded_channels(), inverted_bottlenecks()}) {
    const auto input = test::normal({6, 3, 12, 12}, 5).contiguous(at::MemoryFormat::ChannelsLast);
    const TeacherPass pass(teacher.graph, teacher.parameters);
    const auto kept = see(teacher, input, [&](const at::Tensor& images) { return pass(images); });
    const auto blocks = pass.bytes_of_blocks();
    for (std::size_t n = 0; n < blocks.size(); ++n) {
      const double memory = 6 * bytes_held(blocks, n);
      const TeacherPass again(teacher.graph, teacher.parameters, memory);
      const auto seen =
          see(teacher, input, [&](const at::Tensor& images) { return again(images); });
      EXPECT_TRUE(at::equal(seen.logits, kept.logits)) << n;
      EXPECT_TRUE(at::equal(seen.loss, kept.loss)) << n;
      EXPECT_TRUE(at::equal(seen.gradient, kept.gradient)) << n;
    }
  }
}

// Convolutions that autograd remembers, each with what it has read.
TEST(TeacherPass, KeepsFewerValuesWhereBlocksAreRecomputed) {
  const auto teacher = inverted_bottlenecks();
  const auto remembered = [&](double memory) {
    const TeacherPass pass(teacher.graph, teacher.parameters, memory);
    const auto images = test::normal({4, 3, 12, 12}, 5).requires_grad_(true);
    const at::Tensor logits = pass(images).logits;
    std::int64_t convolutions = 0;
    std::set<const torch::autograd::Node*> seen;
    std::vector<const torch::autograd::Node*> left{logits.grad_fn().get()};
    while (!left.empty()) {
      const auto* node = left.back();
      left.pop_back();
      if (!node || !seen.insert(node).second) continue;
      convolutions += node->name().find("Convolution") != std::string::npos;
      for (const auto& edge : node->next_edges()) left.push_back(edge.function.get());
    }
    return convolutions;
  };
  EXPECT_GT(remembered(0), remembered(1));
}

TEST(RecomputedBlocks, AreAsFewAsKeepWithinTheMemory) {
  const std::vector<BlockBytes> blocks{{10, 2}, {8, 1}, {4, 1}, {3, 0}};
  EXPECT_EQ(bytes_held(blocks, 0), 25);
  EXPECT_EQ(bytes_held(blocks, 1), 2 + 15);
  EXPECT_EQ(bytes_held(blocks, 2), 3 + 10);  // the first block again, while the last two hold 7
  EXPECT_EQ(bytes_held(blocks, 3), 4 + 10);
  EXPECT_EQ(blocks_to_recompute(blocks, 25), 0u);
  EXPECT_EQ(blocks_to_recompute(blocks, 24), 1u);
  EXPECT_EQ(blocks_to_recompute(blocks, 13), 2u);
  EXPECT_EQ(blocks_to_recompute(blocks, 1), 2u);  // the least that can be held
  EXPECT_EQ(blocks_to_recompute({{5, 0}}, 1), 0u);
}

TEST(TeacherPass, LeavesNoBatchNormSumOrClipToLibtorch) {
  const auto teacher = many_forms();
  const TeacherPass pass(teacher.graph, teacher.parameters);
  for (const auto& node : pass.graph().nodes) {
    EXPECT_FALSE(models::is<models::BatchNorm>(node)) << node.name;
    // Two nodes read the stem's BatchNorm, so its clip stands alone.
    EXPECT_TRUE(!models::is<models::Clip>(node) || node.name == "relu6") << node.name;
    EXPECT_FALSE(models::is<models::Add>(node)) << node.name;
  }
}

}  // namespace
}  // namespace zsq::train
