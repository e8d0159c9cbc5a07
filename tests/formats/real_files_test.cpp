// SPDX-License-Identifier: Apache-2.0
// The readers on files that PyTorch, NumPy and two ONNX exporters wrote.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/npy.h"
#include "formats/onnx.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "tests/formats/helpers.h"
#include "tests/support/networks.h"

namespace zsq::formats {
namespace {

void expect_contains(const NamedArrays& all, const NamedArrays& wanted) {
  for (const auto& [name, array] : wanted) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(find(all, name));
    expect_same(*find(all, name), array);
  }
}

TEST(RealFiles, ContainersOfOneNetworkHoldTheSameTensors) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  for (const auto& [name, tensors] :
       {std::pair{"resnet20_random", 128u}, {"efficientnet_lite0", 296u}}) {
    const auto file = [&, name = name](const char* suffix) {
      return test::network_path(std::string(name) + suffix);
    };
    const NamedArrays truth = read_safetensors(file(".safetensors")).tensors;
    EXPECT_EQ(truth.size(), tensors);
    for (const char* suffix : {".pth", ".legacy.pth"}) {
      const NamedArrays state = read_pth(file(suffix));
      EXPECT_EQ(state.size(), truth.size());
      expect_contains(truth, state);
    }
  }
}

TEST(RealFiles, NpzOfNumPy) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const NamedArrays arrays = read_npz(test::network_path("resnet20_random.npz"));
  ASSERT_EQ(arrays.size(), 5u);
  EXPECT_EQ(find(arrays, "input")->shape, (std::vector<std::int64_t>{2, 3, 32, 32}));
  EXPECT_EQ(find(arrays, "tolerance")->as<double>()[0], 1e-3);
  const auto output = find(arrays, "output")->as<float>();
  const auto exact = find(arrays, "output_f64")->as<double>();
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(output[i], exact[i], 1e-4);
}

TEST(RealFiles, OnnxOfBothExporters) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  struct Case {
    const char* name;
    std::int64_t opset;
    int batch_norms;
    std::size_t nodes;
  };
  for (const Case& c : {Case{"shufflenet_v2_x0_5", 17, 56, 975},
                        {"shufflenet_v2_x0_5_opset9", 9, 56, 662},
                        {"mobilenet_v3_small", 17, 34, 167},
                        {"resnet18_w25_dynamo", 20, 21, 186},
                        {"resnet20_random_folded", 17, 0, 59}}) {
    SCOPED_TRACE(c.name);
    const auto model = onnx::read(test::network_path(std::string(c.name) + ".onnx"));
    EXPECT_EQ(model.opset, c.opset);
    EXPECT_EQ(model.graph.nodes.size(), c.nodes);
    EXPECT_EQ(std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                            [](const auto& n) { return n.op_type == "BatchNormalization"; }),
              c.batch_norms);
    EXPECT_EQ(model.graph.inputs.at(0).name, "input");
    EXPECT_FALSE(model.graph.inputs.at(0).shape.at(0).symbol.empty());  // the batch
  }
}

// What is written is read back the same, and writing it again gives the same bytes.
TEST(RealFiles, OnnxRoundTrip) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const TempFolder folder;
  const auto model = onnx::read(test::network_path("efficientnet_lite0.onnx"));
  onnx::write(folder / "a", model);
  const auto back = onnx::read(folder / "a");
  expect_same(back.graph.initializers, model.graph.initializers);
  onnx::write(folder / "b", back);
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256_of_file(folder / "b"));
}

}  // namespace
}  // namespace zsq::formats
