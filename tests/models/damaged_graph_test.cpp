// SPDX-License-Identifier: Apache-2.0
// A file that reads as ONNX may still hold any nonsense: it is imported or refused with Error.
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "formats/onnx.h"
#include "models/load.h"
#include "tests/support/networks.h"

namespace zsq::models {
namespace {

namespace proto = formats::onnx;

// One random change of a node: inputs dropped, crossed or repeated, numbers replaced by extreme
// ones.
void damage(proto::Model& file, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static const std::int64_t kNumbers[] = {0,
                                          1,
                                          -1,
                                          3,
                                          7,
                                          1 << 20,
                                          std::int64_t{1} << 40,
                                          std::int64_t{1} << 62,
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
  auto& nodes = file.graph.nodes;
  auto& node = nodes[below(nodes.size())];
  const auto& other = nodes[below(nodes.size())];
  switch (below(6)) {
    case 0:
      if (!node.inputs.empty()) node.inputs.pop_back();
      break;
    case 1:
      if (!node.inputs.empty() && !other.outputs.empty()) {
        node.inputs[below(node.inputs.size())] = other.outputs[0];
      }
      break;
    case 2:
      node.op_type = other.op_type;
      break;
    case 3:
      node.attributes = other.attributes;
      break;
    default:
      for (auto& attribute : node.attributes) {
        if (auto* one = std::get_if<std::int64_t>(&attribute.value)) *one = kNumbers[below(10)];
        auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value);
        if (list && !list->empty()) (*list)[below(list->size())] = kNumbers[below(10)];
        auto* tensor = std::get_if<formats::Array>(&attribute.value);
        if (tensor && tensor->dtype == formats::DType::i64 && !tensor->data.empty()) {
          auto* numbers = reinterpret_cast<std::int64_t*>(tensor->data.data());
          numbers[below(tensor->data.size() / 8)] = kNumbers[below(10)];
        }
      }
  }
}

class Damaged : public testing::TestWithParam<const char*> {};

TEST_P(Damaged, IsImportedOrRefused) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto path = test::network_path(std::string(GetParam()) + ".onnx");
  const auto whole = proto::read(path);
  std::mt19937 random(20);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    auto file = whole;
    for (int change = 0; change < 1 + i % 3; ++change) damage(file, random);
    try {
      import_onnx(file);
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    }
  }
  EXPECT_GT(refused, 10);
}

INSTANTIATE_TEST_SUITE_P(Importer, Damaged,
                         testing::Values("resnet18_w25_dynamo", "shufflenet_v2_x0_5",
                                         "resnet20_random", "mobilenet_v2_w35"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace zsq::models
