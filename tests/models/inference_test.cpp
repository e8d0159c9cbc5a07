// SPDX-License-Identifier: Apache-2.0
#include "models/inference.h"

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "tests/support/network_builder.h"

namespace zsq::models::inference_test {
namespace {

// BatchNorm after convolutions of each kind, with and without a bias, after a sum, and after a
// convolution that something else reads as well.
Model varied_network() {
  test::NetworkBuilder net({3, 12, 10});
  const auto stem = net.relu6(
      "stem.relu",
      net.batch_norm(
          "stem.bn",
          net.conv("stem", net.input(), {8, 3, 3, 3}, Conv2d{{2, 2}, {0, 0, 1, 1}}, true), 8));
  const auto depthwise = net.conv_bn_relu("depthwise", stem, 8, 8, 3, 8);
  const auto shared = net.conv("shared", depthwise, 8, 8, 1);
  const auto normed = net.batch_norm("shared.bn", shared, 8);
  const auto sum = net.op("sum", Add{}, {shared, normed});
  const auto last = net.relu("last", net.batch_norm("sum.bn", sum, 8));
  const auto pooled = net.op("flat", Flatten{}, {net.op("pool", GlobalAvgPool{}, {last})});
  return net.finish(net.linear("fc", pooled, 8, 5), 5);
}

TEST(Inference, GivesWhatExecuteGives) {
  const Model model = varied_network();
  const Inference infer(model.graph, model.parameters);
  for (const std::int64_t n : {0, 1, 7, 131}) {  // more than are computed at once, too
    const auto images = test::normal({n, 3, 12, 10}, 5);
    const auto expected = execute(model.graph, model.parameters, images);
    const auto result = infer(images);
    EXPECT_EQ(result.sizes(), expected.sizes());
    EXPECT_TRUE(at::allclose(result, expected, 1e-4, 1e-5)) << n;
  }
}

TEST(Inference, FoldsABatchNormThatIsTheOutput) {
  test::NetworkBuilder net({3, 6, 6});
  const auto model = net.finish(net.conv_bn("a", net.input(), 3, 4));
  const auto images = test::normal({3, 3, 6, 6}, 5);
  EXPECT_TRUE(at::allclose(Inference(model.graph, model.parameters)(images),
                           execute(model.graph, model.parameters, images), 1e-4, 1e-5));
}

// As in networks that normalise before each block: what a fold took in is read by the next
// BatchNorm and by the shortcut around it.
TEST(Inference, LeavesABatchNormBehindAnotherOneThatSomethingElseReads) {
  test::NetworkBuilder net({3, 6, 6});
  const auto stem = net.conv_bn("stem", net.input(), 3, 4);
  const auto model = net.finish(net.op("sum", Add{}, {stem, net.batch_norm("block.bn", stem, 4)}));
  const auto images = test::normal({3, 3, 6, 6}, 5);
  EXPECT_TRUE(at::allclose(Inference(model.graph, model.parameters)(images),
                           execute(model.graph, model.parameters, images), 1e-4, 1e-5));
}

// Clips write over what they read only if nothing else reads it: not the images of the caller, and
// not what a sum takes as well.
TEST(Inference, OverwritesNothingThatIsReadAgain) {
  test::NetworkBuilder net({3, 6, 6});
  const auto clipped = net.relu6("first", net.input());
  const auto conv = net.conv("conv", clipped, 3, 4);
  const auto sum = net.op("sum", Add{}, {net.relu("second", conv), conv});
  const auto model = net.finish(net.relu("third", sum));
  const auto images = test::normal({3, 3, 6, 6}, 5), before = images.clone();
  const auto result = execute(model.graph, model.parameters, images);
  EXPECT_TRUE(images.equal(before));
  const Node& node = model.graph[conv];
  const auto map = execute_node(node, {before.clamp(0, 6)}, model.parameters);
  EXPECT_TRUE(at::allclose(result, map.add(map.clamp_min(0)).clamp_min(0), 1e-5, 1e-6));
}

// Counts its calls and passes on what it is given, as a quantizer would round it.
class Counting : public CustomOp {
 public:
  std::string kind() const override { return "counting"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs, const ParameterStore&) const override {
    ++calls;
    return inputs[0].mul(2);
  }
  mutable int calls = 0;
};

TEST(Inference, ComputesOnceWhatReadsNoImage) {
  const auto counting = std::make_shared<Counting>();
  test::NetworkBuilder net({3, 64, 64});
  const auto weight = net.op("w", Parameter{}, {}, {{"value", "w"}});
  net.model().parameters.set("w", test::normal({32, 3, 3, 3}, 1));
  const auto doubled = net.op("doubled", Custom{counting}, {weight});
  const auto conv = net.op("conv", Conv2d{{1, 1}, {1, 1, 1, 1}}, {net.input(), doubled});
  const Model model = net.finish(net.batch_norm("bn", conv, 32));
  const Inference infer(model.graph, model.parameters);
  const auto images = test::normal({130, 3, 64, 64}, 2);  // 68 MB of output: several batches
  const auto result = infer(images);
  EXPECT_EQ(counting->calls, 1);
  EXPECT_TRUE(at::allclose(result, execute(model.graph, model.parameters, images), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(infer(images), result, 0, 0)) << "and leaves the network as it was";
}

}  // namespace
}  // namespace zsq::models::inference_test
