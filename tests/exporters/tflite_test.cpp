// SPDX-License-Identifier: Apache-2.0
// LiteRT itself runs every file: it computes the student, and the file keeps LiteRT's 8-bit
// quantization specification (check_tflite.py).
#include "exporters/tflite/tflite.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exporters/registry.h"
#include "exporters/tflite/builder.h"
#include "formats/atomic_file.h"
#include "models/execute.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::tflite_test {
namespace {

namespace fs = std::filesystem;

// Height and width pass a linear layer without a pool: the order of its columns matters. A factor
// per column of the map, where channels are last.
models::Model flattened_map() {
  test::NetworkBuilder net({3, 8, 8}, test::varied_parameters(5));
  models::NodeId x =
      net.conv("stem", net.input(), {6, 3, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}}, true);
  net.model().parameters.set("columns.value", test::normal({4}, 9));
  const auto columns = net.op("columns", models::Parameter{}, {}, {{"value", "columns.value"}});
  x = net.op("by_column", models::Mul{}, {net.relu("relu", x), columns});
  x = net.op("flat", models::Flatten{}, {x});
  x = net.relu("hidden_relu", net.linear("hidden", x, 96, 12));
  return net.finish(net.linear("fc", x, 12, 5), 5);
}

// Pools whose pads neither SAME nor VALID says.
models::Model pools() {
  test::NetworkBuilder net({3, 15, 15}, test::varied_parameters(6));
  models::NodeId x =
      net.relu("relu", net.conv("stem", net.input(), {4, 3, 3, 3}, {.pads = {1, 1, 1, 1}}, true));
  const auto y = net.op("ceil", models::MaxPool{{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true}, {x});
  const auto z = net.op("counted", models::AvgPool{{3, 3}, {2, 2}, {1, 1, 1, 1}, false, true}, {x});
  const auto w = net.op("clipped", models::AvgPool{{3, 3}, {2, 2}, {1, 1, 1, 1}, true, false}, {x});
  x = net.op("most", models::MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x});
  x = net.op("first", models::Slice{2, 0, 7, 1}, {x});
  x = net.op("all", models::Pad{{0, 0, 0, 0}, {0, 0, 1, 0}, 0.5}, {x});
  x = net.op("slices", models::Concat{1}, {x, z, w});
  const auto part = net.op("part", models::Slice{3, -8, 100, 1}, {x});
  x = net.relu("relu2", net.conv("tail", part, {4, 12, 3, 3}, {.pads = {1, 1, 1, 1}}, true));
  x = net.op("sum", models::Add{}, {x, y});
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  return net.finish(net.linear("fc", x, 4, 5), 5);
}

struct Network {
  const char* name;
  models::Model (*make)();
};
constexpr Network kNetworks[] = {{"awkward", [] { return test::awkward_network(4); }},
                                 {"layers", [] { return test::layer_zoo(); }},
                                 {"operators", [] { return test::operator_zoo(); }},
                                 {"convnext", [] { return test::convnext_units(); }},
                                 {"flattened", flattened_map},
                                 {"pools", pools}};

struct Case {
  Network network;
  std::int64_t weight_bits, activation_bits;
  Target target;  // of the run
};
std::ostream& operator<<(std::ostream& stream, const Case& c) {
  return stream << c.network.name << "_w" << c.weight_bits << "a" << c.activation_bits << "_of_"
                << enum_name(c.target);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Network& network : kNetworks) {
    for (const auto& [w, a] : {std::pair(8, 8), {4, 4}, {3, 5}})
      all.push_back({network, w, a, Target::tflite});
    for (const Target target : {Target::onnxruntime, Target::tensorrt})
      all.push_back({network, 4, 4, target});
  }
  return all;
}

class Tflite : public testing::TestWithParam<Case> {};

// LiteRT's default sums exactly and rounds once, as the student does; it multiplies by the ratio of
// two steps in another order or with 20 bits, so that a code on a threshold may be the next one
// and move a few after it. Its reference kernels give means that are a code off: each of the last
// layer's features may be.
TEST_P(Tflite, LitertComputesTheStudent) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const Case c = GetParam();
  const models::Model teacher = c.network.make();
  const quant::Student student =
      test::student_of(teacher, test::scheme(c.weight_bits, c.activation_bits, c.target));
  const test::TempFolder folder;
  const fs::path path = folder / "model.tflite";
  const ExportReport report = export_tflite(test::for_target(student, Target::tflite), path, {});
  const auto& size = teacher.graph.input_shape;
  const at::Tensor images = test::normal({32, size[0], size[1], size[2]}, 7);
  const auto result = test::run_in_litert(path, images);
  if (!result) GTEST_SKIP() << "needs the Python package ai-edge-litert";
  EXPECT_EQ(result->faults, "");

  const at::Tensor expected = test::logits_in_onnxruntime(student, folder / "model.onnx", images);
  const at::Tensor gap = (result->logits - expected).abs();
  const at::Tensor reference_gap = (result->reference_logits - expected).abs();
  const double code = test::code_worth(student);
  constexpr double kFeatures = 16;  // of the last layers, at most
  EXPECT_LE(gap.max().item<double>(), 6 * code);
  EXPECT_LE(gap.mean().item<double>(), 0.2 * code);
  EXPECT_LE(reference_gap.max().item<double>(), 2 * kFeatures * code);
  const at::Tensor values = models::execute(student.graph, student.parameters, images).detach();
  EXPECT_LE((result->logits - values).abs().mean().item<double>(), 3 * code);

  const auto integer = std::count_if(report.layers.begin(), report.layers.end(),
                                     [](const auto& l) { return l.executes_as == "int8"; });
  EXPECT_EQ(result->layers, static_cast<std::int64_t>(report.layers.size()));
  EXPECT_EQ(result->integer_layers, integer) << "the table says otherwise";
  EXPECT_EQ(integer, result->layers - 1) << "all but the last, whose result is no code";
}

INSTANTIATE_TEST_SUITE_P(Networks, Tflite, testing::ValuesIn(cases()),
                         [](const auto& info) { return testing::PrintToString(info.param); });

// node(..., {x, builder.integers(...)}, ..., builder.kind(x)) adds a tensor between the two.
TEST(TfliteBuilder, WhatItSaysOfATensorStaysWhereItIs) {
  tflite::Builder builder;
  const auto x = builder.input("x", {1, 2, 2, 3});
  const tflite::Kind* kind = &builder.kind(x);
  const tflite::Sizes* shape = &builder.shape(x);
  for (int i = 0; i < 1000; ++i) builder.scalar("more", 1);
  EXPECT_EQ(kind, &builder.kind(x));
  EXPECT_EQ(shape, &builder.shape(x));
}

TEST(TfliteFile, HoldsTheMetadataOfTheRun) {
  const quant::Student student =
      test::student_of(flattened_map(), test::scheme(8, 8, Target::tflite));
  const test::TempFolder folder;
  const fs::path path = folder / "model.tflite";
  const ExportReport report = export_tflite(student, path, {{"zsq.recipe", "instant"}});
  const std::string text = formats::read_text(path);
  EXPECT_EQ(static_cast<std::int64_t>(text.size()), report.bytes);
  EXPECT_EQ(text.substr(4, 4), "TFL3");
  EXPECT_NE(text.find("zsq.recipe"), std::string::npos);
  EXPECT_NE(text.find("instant"), std::string::npos);
}

TEST(TfliteFile, IsWhatTheTargetTableWrites) {
  EXPECT_EQ(target_file(Target::tflite).extension, ".tflite");
  EXPECT_EQ(target_file(Target::tflite).write, export_tflite);
}

}  // namespace
}  // namespace zsq::exporters::tflite_test
