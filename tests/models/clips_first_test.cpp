// SPDX-License-Identifier: Apache-2.0
#include "models/clips_first.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "tests/support/network_builder.h"

namespace zsq::models::clips_first_test {
namespace {

using Movers = std::vector<Op>;

const Op kPool = MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}};
const Op kPad = Pad{{0, 0, 1, 0}, {0, 0, 0, 1}};

// A convolution, `movers`, ReLU6 ("clip"), a pool over all places, and a layer if `more`.
Model network(const Movers& movers, bool more = true, bool read_twice = false) {
  test::NetworkBuilder net;
  NodeId x = net.conv("conv", net.input(), 3, 8);
  for (std::size_t i = 0; i < movers.size(); ++i)
    x = net.op("mover" + std::to_string(i), movers[i], {x});
  NodeId y = net.relu6("clip", x);
  if (read_twice) y = net.op("sum", Add{}, {x, y});
  y = net.op("flat", Flatten{}, {y});
  if (!more) return net.finish(y, 8);
  const auto width = infer_shapes(net.model().graph, net.model().parameters).back()[1];
  return net.finish(net.linear("fc", y, width, 4));
}

std::string clip_reads(const Model& model) {
  return model.graph[model.graph[model.graph.id_of("clip")].inputs[0]].name;
}

void expect_same(const Model& before, const Model& after) {
  const auto [c, h, w] = before.graph.input_shape;
  const auto x = test::normal({2, c, h, w}, 1);
  EXPECT_TRUE(
      execute(after.graph, after.parameters, x).equal(execute(before.graph, before.parameters, x)));
}

TEST(ClipsFirst, StandAfterTheLayer) {
  const std::vector<Movers> cases{{kPool},
                                  {Resize{{2, 2}}},
                                  {kPad},
                                  {Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, 0, PadMode::reflect}},
                                  {Transpose{{0, 2, 3, 1}}},
                                  {Slice{2, 1, 3}},
                                  {Flatten{}},
                                  {Reshape{{4, 2, -1}}, Transpose{{0, 2, 1, 3}}, Flatten{}},
                                  {kPool, kPad, Slice{3, 0, 2}}};
  for (const auto& movers : cases) {
    const Model before = network(movers);
    Model after = before;
    put_clips_first(after);
    EXPECT_EQ(clip_reads(after), "conv") << op_name(movers.back());
    EXPECT_EQ(after.graph.nodes.size(), before.graph.nodes.size());
    expect_same(before, after);
  }
}

TEST(ClipsFirst, StayWhereAnotherValueWouldCome) {
  const Op beyond = Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, -1};
  for (const auto& [model, reads] : {std::pair{network({AvgPool{{2, 2}, {2, 2}}}), "mover0"},
                                     {network({kPool, beyond}), "mover1"},
                                     {network({beyond, kPool}), "mover0"},
                                     {network({kPool}, true, true), "mover0"},
                                     {network({kPool}, false), "mover0"}}) {
    Model after = model;
    put_clips_first(after);
    EXPECT_EQ(clip_reads(after), reads);
    expect_same(model, after);
  }
}

TEST(ClipsFirst, StayWithBoundsOfChannels) {
  Model model = network({kPool});
  model.parameters.set("lower", at::full({1, 8, 1, 1}, 0.1));
  model.graph[model.graph.id_of("clip")].params["lower"] = "lower";
  put_clips_first(model);
  EXPECT_EQ(clip_reads(model), "mover0");
}

}  // namespace
}  // namespace zsq::models::clips_first_test
