// SPDX-License-Identifier: Apache-2.0
#include "train/teacher_pass.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

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
