// SPDX-License-Identifier: Apache-2.0
// The readers on files that PyTorch, NumPy and two ONNX exporters wrote.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/npy.h"
#include "formats/onnx.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "tests/formats/helpers.h"
#include "tests/support/shared.h"

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
  const auto folder = test::shared_path("importer");
  ZSQ_SKIP_WITHOUT(folder);
  const NamedArrays truth = read_safetensors(folder / "resnet20_random.safetensors").tensors;
  EXPECT_EQ(truth.size(), 128u);
  for (const char* name : {"resnet20_random.pth", "resnet20_random.legacy.pth"}) {
    const NamedArrays state = read_pth(folder / name);
    EXPECT_EQ(state.size(), truth.size());
    expect_contains(truth, state);
  }
}

TEST(RealFiles, PublishedCheckpointEqualsItsSafetensors) {
  const auto folder = test::shared_path("models");
  ZSQ_SKIP_WITHOUT(folder);
  const auto file = read_safetensors(folder / "resnet20_cifar10.safetensors");
  EXPECT_EQ(file.metadata.at("num_classes"), "10");
  const NamedArrays state = read_pth(folder / "resnet20-12fca82f.th");
  EXPECT_EQ(state.size(), 97u);
  expect_contains(file.tensors, state);
  EXPECT_EQ(sha256_of_file(folder / "resnet20_cifar10.safetensors"),
            "afc14bb56f0d30e6b815c1b15db209ed6893762ffad2afb15024f40944dc4b8c");
}

TEST(RealFiles, NpzOfNumPy) {
  const auto path = test::shared_path("importer/resnet20_random.npz");
  ZSQ_SKIP_WITHOUT(path);
  const NamedArrays arrays = read_npz(path);
  ASSERT_EQ(arrays.size(), 4u);
  EXPECT_EQ(find(arrays, "input")->shape, (std::vector<std::int64_t>{2, 3, 32, 32}));
  EXPECT_EQ(find(arrays, "tolerance")->as<double>()[0], 1e-3);
  const auto output = find(arrays, "output")->as<float>();
  const auto exact = find(arrays, "output_f64")->as<double>();
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(output[i], exact[i], 1e-4);
}

TEST(RealFiles, OnnxOfBothExporters) {
  const auto folder = test::shared_path("importer");
  ZSQ_SKIP_WITHOUT(folder);
  struct Case {
    const char* name;
    std::int64_t opset;
    int batch_norms;
    std::size_t nodes;
  };
  for (const Case& c : {Case{"shufflenet_v2_x0_5", 17, 56, 975},
                        {"mobilenet_v3_small", 17, 34, 167},
                        {"resnet10_dynamo", 20, 13, 118},
                        {"neg_resnet_folded", 17, 0, 37}}) {
    SCOPED_TRACE(c.name);
    const auto model = onnx::read(folder / (std::string(c.name) + ".onnx"));
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
  const auto path = test::shared_path("models/efficientnet_lite0.onnx");
  ZSQ_SKIP_WITHOUT(path);
  const TempFolder folder;
  const auto model = onnx::read(path);
  onnx::write(folder / "a", model);
  const auto back = onnx::read(folder / "a");
  expect_same(back.graph.initializers, model.graph.initializers);
  onnx::write(folder / "b", back);
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256_of_file(folder / "b"));
}

}  // namespace
}  // namespace zsq::formats
