// SPDX-License-Identifier: Apache-2.0
// What is quantized after the last layers, by what the outputs mean.
#include <gtest/gtest.h>

#include <set>

#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::placement_end_test {
namespace {

using models::NodeId;
using test::NetworkBuilder;
using Names = std::set<std::string>;

// The tensors that have a grid.
Names quantized_in(const models::Model& model) {
  const auto student = test::quantized(model, {});
  Names names;
  for (const NodeId id : activation_sites(student.graph))
    names.insert(student.graph[student.graph[id].inputs[0]].name);
  return names;
}

// Boxes in pixels and their scores in one row: 256 codes of the boxes are too few for the scores.
TEST(Placement, WhatDecodesValuesAfterLinearLayersIsInFloat) {
  NetworkBuilder net;
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 4);
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  const NodeId rows = net.linear("fc", x, 4, 5);
  const NodeId scores =
      net.op("scores", models::Sigmoid{}, {net.op("logit", models::Slice{1, 4, 5}, {rows})});
  const NodeId boxes = net.op("boxes", models::Slice{1, 0, 4}, {rows});
  const NodeId area = net.op("pixels", models::Mul{}, {boxes, boxes});
  auto model = net.finish(net.op("row", models::Concat{1}, {area, scores}));
  const Names before_end{"input", "stem.relu", "pool"};
  EXPECT_NE(quantized_in(model), before_end);
  model.graph.signature.kind = models::OutputKind::values;
  EXPECT_EQ(quantized_in(model), before_end);
}

// A convolution would run in float if no code followed it.
TEST(Placement, AnEmbeddingOfAConvolutionIsPooledInCodes) {
  NetworkBuilder net;
  const NodeId x = net.conv("embed", net.conv_bn_relu("stem", net.input(), 3, 4), 4, 8);
  auto model = net.finish(net.op("pool", models::GlobalAvgPool{false}, {x}));
  model.graph.signature.kind = models::OutputKind::values;
  EXPECT_EQ(quantized_in(model), (Names{"input", "stem.relu", "embed"}));
}

}  // namespace
}  // namespace zsq::quant::placement_end_test
