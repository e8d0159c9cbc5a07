// SPDX-License-Identifier: Apache-2.0
// Channels that are spread over the map are one operator of the file, and PRelu two that
// onnxruntime is faster with.
#include "exporters/depth_to_space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exporters/registry.h"
#include "formats/onnx.h"
#include "models/execute.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::depth_to_space_test {
namespace {

using Dims = std::vector<std::int64_t>;
using models::NodeId;
using test::NetworkBuilder;

const Dims kCrd{0, 1, 4, 2, 5, 3}, kDcr{0, 3, 4, 1, 5, 2};

NodeId spread(NetworkBuilder& net, NodeId x, Dims split, const Dims& perm, Dims whole) {
  x = net.op("split", models::Reshape{std::move(split)}, {x});
  x = net.op("moved", models::Transpose{perm}, {x});
  return net.op("spread", models::Reshape{std::move(whole)}, {x});
}

// 16 channels of 6 x 6 between two layers.
template <class Build>
quant::Student student(const Build& build, std::int64_t channels) {
  NetworkBuilder net({3, 6, 6}, test::varied_parameters(3));
  const NodeId x = build(net, net.conv_bn_relu("stem", net.input(), 3, 16));
  const NodeId pool =
      net.op("pool", models::GlobalAvgPool{}, {net.conv("reader", x, channels, 6, 1, 1, true)});
  const NodeId flat = net.op("flat", models::Flatten{}, {pool});
  return test::student_of(net.finish(net.linear("fc", flat, 6, 5), 5), test::scheme(8, 8));
}

std::int64_t count(const formats::onnx::Model& file, const std::string& type) {
  return std::ranges::count(file.graph.nodes, type, &formats::onnx::Node::op_type);
}

formats::onnx::Model checked_file(const quant::Student& one) {
  const test::TempFolder folder;
  const auto path = folder / "model.onnx";
  export_onnx(one, path, {});
  const at::Tensor images = test::normal({16, 3, 6, 6}, 8);
  const at::Tensor expected = models::execute(one.graph, one.parameters, images).detach();
  test::expect_same_up_to_flips(test::run_in_onnxruntime(path, images).logits, expected, one);
  return formats::onnx::read(path);
}

TEST(DepthToSpace, IsOneOperatorOfTheFile) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto build = [](bool crd) {
    return [crd](NetworkBuilder& net, NodeId x) {
      return crd ? spread(net, x, {4, 2, 2, 6, 6}, kCrd, {4, 12, 12})
                 : spread(net, x, {2, 2, 4, 6, 6}, kDcr, {4, 12, 12});
    };
  };
  for (const bool crd : {true, false}) {
    const auto file = checked_file(student(build(crd), 4));
    EXPECT_EQ(count(file, "DepthToSpace"), 1) << crd;
    EXPECT_EQ(count(file, "Transpose"), 0) << crd;
  }
}

TEST(DepthToSpace, IsNoBlockOfUnequalSides) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto file = checked_file(student(
      [](NetworkBuilder& net, NodeId x) {
        return spread(net, x, {4, 1, 4, 6, 6}, kCrd, {4, 6, 24});
      },
      4));
  EXPECT_EQ(count(file, "DepthToSpace"), 0);
  EXPECT_EQ(count(file, "Transpose"), 1);
}

TEST(DepthToSpace, LeavesWhatOthersRead) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto file = checked_file(student(
      [](NetworkBuilder& net, NodeId x) {
        const NodeId y = spread(net, x, {4, 2, 2, 6, 6}, kCrd, {4, 12, 12});
        const NodeId moved = net.model().graph[y].inputs[0];
        const NodeId other = net.op("other", models::Reshape{{4, 12, 12}}, {moved});
        return net.op("both", models::Concat{1}, {y, other});
      },
      8));
  EXPECT_EQ(count(file, "DepthToSpace"), 0);
}

TEST(PRelu, IsTheLargerOfTwoProductsUpToASlopeOfOne) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  for (const double largest : {1.0, 1.5}) {
    const auto file = checked_file(student(
        [&](NetworkBuilder& net, NodeId x) {
          const auto slopes = test::normal({16, 1, 1}, 4).clamp(-1, largest);
          slopes[3] = largest;
          net.model().parameters.set("slopes", slopes);
          return net.op("prelu", models::PRelu{}, {net.batch_norm("bn2", x, 16)},
                        {{"slope", "slopes"}});
        },
        16));
    EXPECT_EQ(count(file, "PRelu"), largest > 1);
    EXPECT_EQ(count(file, "Max"), largest <= 1);
  }
}

}  // namespace
}  // namespace zsq::exporters::depth_to_space_test
