// SPDX-License-Identifier: Apache-2.0
// Every operator that stays float between quantized tensors computes in the runtimes what it does
// here, or is refused by name.
#include "exporters/island_ops.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "exporters/registry.h"
#include "models/elementwise.h"
#include "models/execute.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::island_ops_test {
namespace {

using models::Elementwise;
using models::Function;
using models::NodeId;
using models::ReduceKind;

// Adds nodes to a map [4, 6, 6] of values that are mostly from 0 to 6; returns the last one.
using Build = std::function<NodeId(test::NetworkBuilder&, NodeId)>;
struct Case {
  std::string name;
  Build build;
};

Case op(const std::string& name, models::Op one) {
  return {name, [one](auto& net, NodeId x) { return net.op("island", one, {x}); }};
}

// With a second map: 1 more than a sigmoid of the first.
Case pair(const std::string& name, models::Op one) {
  return {name, [one](test::NetworkBuilder& net, NodeId x) {
            net.model().parameters.set("one", at::ones({1, 1, 1}));
            const NodeId constant = net.op("one", models::Parameter{}, {}, {{"value", "one"}});
            const NodeId gate = net.op("gate", models::Sigmoid{}, {x});
            return net.op("island", one, {x, net.op("second", models::Add{}, {gate, constant})});
          }};
}

models::Op interpolate(models::InterpolationMode mode, models::ResizeCoordinates coordinates,
                       models::Pair size, bool scales = false, bool antialias = false) {
  models::Interpolate result;
  result.mode = mode;
  result.coordinates = coordinates;
  result.size = size;
  result.antialias = antialias;
  if (scales) result.scale = {double(size[0]) / 6, double(size[1]) / 6};
  return result;
}

models::Op padded(models::PadMode mode) {
  models::Pad pad{{0, 0, 1, 2}, {0, 0, 2, 1}};
  pad.mode = mode;
  return pad;
}

// A map again of what is left without the reduced dimensions.
Case flat(const std::string& name, models::Reduce reduce, std::vector<std::int64_t> shape) {
  return {name, [=](test::NetworkBuilder& net, NodeId x) {
            return net.op("map", models::Reshape{shape}, {net.op("island", reduce, {x})});
          }};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& info : models::functions()) {
    const bool pole = info.function == Function::log || info.function == Function::reciprocal;
    const Elementwise one{info.function, info.function == Function::power ? 2 : 1.25, 0.75};
    all.push_back({std::string(info.name), [one, pole](test::NetworkBuilder& net, NodeId x) {
                     if (pole) x = net.op("positive", models::Sigmoid{}, {x});
                     return net.op("island", one, {x});
                   }});
  }
  all.push_back({"PRelu", [](test::NetworkBuilder& net, NodeId x) {
                   net.model().parameters.set("slope", test::normal({4, 1, 1}, 3));
                   return net.op("island", models::PRelu{}, {net.batch_norm("bn2", x, 4)},
                                 {{"slope", "slope"}});
                 }});
  using models::BinaryKind;
  all.push_back(pair("Sub", models::Binary{BinaryKind::sub}));
  all.push_back(pair("Div", models::Binary{BinaryKind::div}));
  all.push_back(pair("Max", models::Binary{BinaryKind::maximum}));
  all.push_back(pair("Min", models::Binary{BinaryKind::minimum}));
  all.push_back(pair("Power", models::Binary{BinaryKind::power}));
  all.push_back(pair("MatMul", models::MatMul{}));
  all.push_back(op("Softmax", models::Softmax{1}));
  all.push_back(op("ReduceMean", models::Reduce{ReduceKind::mean, {1}, true}));
  all.push_back(op("ReduceMax", models::Reduce{ReduceKind::max, {1}, true}));
  all.push_back(op("ReduceMin", models::Reduce{ReduceKind::min, {2, 3}, true}));
  all.push_back(op("ReduceSum", models::Reduce{ReduceKind::sum, {3}, true}));
  all.push_back(op("ReduceProd", models::Reduce{ReduceKind::product, {1}, true}));
  all.push_back(flat("MeanOfChannels", {ReduceKind::mean, {1}, false}, {1, 6, 6}));
  all.push_back(flat("MeanOfMap", {ReduceKind::mean, {2, 3}, false}, {4, 1, 1}));
  all.push_back(flat("MeanOfRows", {ReduceKind::mean, {2}, false}, {4, 6, 1}));
  all.push_back({"Expand", [](test::NetworkBuilder& net, NodeId x) {
                   x = net.op("pool", models::GlobalAvgPool{}, {x});
                   return net.op("island", models::Expand{{4, 3, 2}}, {x});
                 }});
  using Mode = models::InterpolationMode;
  using Coordinates = models::ResizeCoordinates;
  all.push_back(op("Linear", interpolate(Mode::linear, Coordinates::half_pixel, {12, 9}, true)));
  all.push_back(op("LinearSize", interpolate(Mode::linear, Coordinates::half_pixel, {11, 4})));
  all.push_back(op("Corners", interpolate(Mode::linear, Coordinates::align_corners, {11, 13})));
  all.push_back(op("Cubic", interpolate(Mode::cubic, Coordinates::half_pixel, {9, 12})));
  all.push_back(op("Nearest", interpolate(Mode::nearest, Coordinates::half_pixel, {9, 4})));
  all.push_back(
      op("Antialias", interpolate(Mode::linear, Coordinates::half_pixel, {4, 3}, false, true)));
  all.push_back(op("Reflect", padded(models::PadMode::reflect)));
  all.push_back(op("Edge", padded(models::PadMode::edge)));
  all.push_back(op("Wrap", padded(models::PadMode::wrap)));
  return all;
}

quant::Student student(const Case& one, Target target) {
  test::NetworkBuilder net({3, 6, 6}, test::varied_parameters(3));
  const NodeId x = net.conv_bn_relu("stem", net.input(), 3, 4);
  const NodeId y = one.build(net, x);
  auto draft = net.model();
  draft.graph.output = y;
  const auto channels = models::infer_shapes(draft.graph, draft.parameters)[y][1];
  const NodeId pool =
      net.op("end", models::GlobalAvgPool{}, {net.conv("reader", y, channels, 6, 1, 1, true)});
  const auto model =
      net.finish(net.linear("head", net.op("flat", models::Flatten{}, {pool}), 6, 5), 5);
  return test::student_of(model, test::scheme(8, 8, target));
}

at::Tensor images() { return test::normal({4, 3, 6, 6}, 8); }

void expect_close(const std::string& name, const at::Tensor& found, const quant::Student& student) {
  const auto expected = models::execute(student.graph, student.parameters, images()).detach();
  ASSERT_EQ(found.sizes(), expected.sizes()) << name;
  EXPECT_LE((found - expected).abs().max().item<double>(),
            0.03 * expected.abs().max().item<double>())
      << name;
}

TEST(IslandOps, RunInOnnxruntime) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const test::TempFolder folder;
  std::vector<std::filesystem::path> paths;
  std::vector<quant::Student> students;
  for (const Case& one : cases()) {
    students.push_back(student(one, Target::onnxruntime));
    paths.push_back(folder / (one.name + ".onnx"));
    export_onnx(students.back(), paths.back(), {});
  }
  const auto ran = test::run_files(paths, images());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    expect_close(paths[i].stem(), ran.outputs[i], students[i]);
    EXPECT_NE(ran.lines[i].find("QLinearConv"), std::string::npos) << ran.lines[i];
  }
}

// A file that the target's runtime runs alike, or a refusal that names node and operator.
template <class Run>
std::vector<std::string> refused_by(Target target, Run run) {
  const test::TempFolder folder;
  std::vector<std::string> refused;
  for (const Case& one : cases()) {
    const auto small = student(one, target);
    const auto& file = target_file(target);
    const auto path = folder / (one.name + std::string(file.extension));
    try {
      file.write(small, path, {}, {});
    } catch (const RefusedByTarget& error) {
      const std::string& node = error.refusals().at(0).node;
      EXPECT_TRUE(node == "island" || node == "map") << error.what();
      refused.push_back(one.name);
      continue;
    }
    if (const auto result = run(path)) expect_close(one.name, *result, small);
  }
  return refused;
}

TEST(IslandOps, RunInLitertOrAreRefused) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto refused = refused_by(Target::tflite, [](const auto& path) {
    const auto result = test::run_in_litert(path, images());
    return result ? std::optional(result->logits) : std::nullopt;
  });
  EXPECT_EQ(refused,
            (std::vector<std::string>{"ThresholdedRelu", "Erf", "Sign", "MatMul", "MeanOfRows",
                                      "Expand", "Linear", "LinearSize", "Corners", "Cubic",
                                      "Nearest", "Antialias", "Reflect", "Edge", "Wrap"}));
}

TEST(IslandOps, RunInNcnnOrAreRefused) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto refused = refused_by(Target::ncnn, [](const auto& path) {
    const auto result = test::check_ncnn(path, images());
    return result ? std::optional(result->logits) : std::nullopt;
  });
  EXPECT_EQ(refused, (std::vector<std::string>{"Softsign", "ThresholdedRelu", "Erf", "Sign",
                                               "Power", "Expand", "Nearest", "Antialias", "Wrap"}));
}

}  // namespace
}  // namespace zsq::exporters::island_ops_test
