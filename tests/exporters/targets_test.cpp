// SPDX-License-Identifier: Apache-2.0
// Every target's file keeps its documented rules, and its runtime computes the student.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>

#include <algorithm>

#include "exporters/registry.h"
#include "formats/onnx.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::targets_test {
namespace {

namespace fs = std::filesystem;

constexpr std::array kAll{Target::onnxruntime, Target::openvino, Target::tensorrt, Target::generic,
                          Target::qcdq};

fs::path file(const std::string& name) {
  static const test::TempFolder folder;
  return folder / name;
}

at::Tensor logits_of(const quant::Student& student, const at::Tensor& images) {
  return models::execute(student.graph, student.parameters, images).detach();
}

// The integer file that onnx_test.cpp compares with an exact integer model. In float a value on a
// threshold rounds the other way now and then; OpenVINO rounds codes in its own order, which at 2
// bits moves some by a step in every layer.
void expect_same_as_onnxruntime(const at::Tensor& logits, const quant::Student& student,
                                const at::Tensor& images) {
  const at::Tensor expected = test::logits_in_onnxruntime(student, file("reference"), images);
  const at::Tensor gap = (logits - expected).abs();
  const double largest = expected.abs().max().item<double>(), code = test::code_worth(student);
  const bool exact = student.options.target != Target::openvino;
  EXPECT_LE(gap.max().item<double>(), exact ? 6 * code : 0.12 * largest);
  EXPECT_LE(gap.mean().item<double>(), exact ? 0.2 * code : 0.025 * largest);
}

const formats::Array& initializer(const formats::onnx::Model& model, const std::string& name) {
  const formats::Array* found = formats::find(model.graph.initializers, name);
  if (!found) throw std::runtime_error("no initializer " + name);
  return *found;
}

struct Case {
  Target target;
  std::int64_t weight_bits, activation_bits;
};
std::ostream& operator<<(std::ostream& stream, const Case& c) {
  return stream << enum_name(c.target) << "_w" << c.weight_bits << "a" << c.activation_bits;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Target target : kAll)
    for (const auto& [w, a] : {std::pair(8, 8), {4, 4}, {4, 8}, {8, 4}, {3, 5}, {2, 2}})
      all.push_back({target, w, a});
  return all;
}

// They run as convolutions (exporters/scaled_gate.h).
std::int64_t scaled_gates(const models::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const models::Node& node) {
    return models::is<models::HardSigmoid>(node) && node.params.contains("scale");
  });
}

class EveryTarget : public testing::TestWithParam<Case> {};

TEST_P(EveryTarget, KeepsItsRulesAndComputesTheStudent) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto [target, weight_bits, activation_bits] = GetParam();
  const QuantOptions options = test::scheme(weight_bits, activation_bits, target);
  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  int networks = 0;
  for (const models::Model& teacher : {test::awkward_network(4), test::layer_zoo()}) {
    const quant::Student student = test::student_of(teacher, options);
    const fs::path path = file(testing::PrintToString(GetParam()) + std::to_string(++networks));
    const ExportReport report = export_onnx(student, path, {});
    const test::TargetResult result =
        test::check_target(std::string(enum_name(target)), path, images);
    EXPECT_EQ(result.faults, "");
    expect_same_as_onnxruntime(result.logits, student, images);
    if (target == Target::tensorrt) continue;  // onnxruntime stands in for it
    const auto integer = std::count_if(report.layers.begin(), report.layers.end(),
                                       [](const auto& l) { return l.executes_as == "int8"; });
    const auto gates = target == Target::onnxruntime ? scaled_gates(student.graph) : 0;
    EXPECT_EQ(result.layers, static_cast<std::int64_t>(report.layers.size()) + gates);
    EXPECT_EQ(result.integer_layers, integer + gates) << "the table says otherwise";
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, EveryTarget, testing::ValuesIn(cases()),
                         [](const auto& info) { return testing::PrintToString(info.param); });

// One student, each target that can hold it: nothing is rounded anew.
TEST(Targets, OneStudentIsTheSameInEach) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = test::scheme(4, 4, Target::tensorrt);
  const quant::Student student = test::student_of(test::awkward_network(4), options);
  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  for (const Target target : kAll) {
    const std::string name(enum_name(target));
    const fs::path path = file("one_" + name);
    export_onnx(test::for_target(student, target), path, {});
    const test::TargetResult result = test::check_target(name, path, images);
    EXPECT_EQ(result.faults, "") << name;
    expect_same_as_onnxruntime(result.logits, test::for_target(student, target), images);
  }
}

TEST(Targets, EveryOperatorIsWrittenForEach) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const at::Tensor images = test::normal({8, 3, 16, 16}, 8);
  for (const Target target : kAll) {
    const quant::Student student =
        test::student_of(test::operator_zoo(), test::scheme(4, 8, target));
    const std::string name(enum_name(target));
    const fs::path path = file("zoo_" + name);
    export_onnx(student, path, {});
    const test::TargetResult result = test::check_target(name, path, images);
    EXPECT_EQ(result.faults, "") << name;
    expect_same_as_onnxruntime(result.logits, student, images);
  }
}

// Pads that count are 0.0, whatever the zero point is, and windows that reach beyond the map have
// the divisor of PyTorch, in runtimes that have other ideas of both.
TEST(Targets, AveragePoolsWithPadsAreTheSameInEach) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  test::NetworkBuilder net({3, 15, 15});
  auto x = net.conv_bn("a", net.input(), 3, 8);  // no ReLU: the zero point is none of the ends
  x = net.op("pads", models::AvgPool{{3, 3}, {1, 1}, {1, 1, 1, 1}, false, true}, {x});
  x = net.conv_bn("b", x, 8, 8);
  x = net.op("overhangs", models::AvgPool{{3, 3}, {2, 2}, {0, 0, 0, 0}, true, true}, {x});
  x = net.conv_bn("c", x, 8, 8);
  x = net.op("both", models::AvgPool{{2, 2}, {2, 2}, {1, 1, 0, 0}, true, true}, {x});
  x = net.op("excludes", models::AvgPool{{3, 3}, {2, 2}, {1, 1, 1, 1}, true, false}, {x});
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  const models::Model network = net.finish(net.linear("fc", x, 8, 10), 10);
  const at::Tensor images = test::normal({16, 3, 15, 15}, 11);
  for (const Target target : {Target::onnxruntime, Target::openvino}) {
    const quant::Student student = test::student_of(network, test::scheme(8, 8, target));
    const std::string name(enum_name(target));
    const fs::path path = file("pools_" + name);
    export_onnx(student, path, {});
    const test::TargetResult result = test::check_target(name, path, images);
    const at::Tensor expected = logits_of(student, images);
    EXPECT_LE((result.logits - expected).abs().max().item<double>(),
              0.02 * expected.abs().max().item<double>())
        << name;
  }
}

// zsq reads back what it writes, UINT4 and int8 codes among it.
TEST(Targets, EachReloadsAsTheSameFunction) {
  const at::Tensor images = test::normal({8, 3, 16, 16}, 10);
  for (const Target target : kAll) {
    const quant::Student student =
        test::student_of(test::awkward_network(), test::scheme(4, 4, target));
    const fs::path path = file("reload_" + std::string(enum_name(target)));
    export_onnx(student, path, {});
    const models::Model reloaded =
        models::load(path, {.make_quantize_chain = quant::quantize_chain_factory()});
    test::expect_same_up_to_flips(
        models::execute(reloaded.graph, reloaded.parameters, images).detach(),
        logits_of(student, images), student);
  }
}

TEST(Tensorrt, RefusesAsymmetricEightBits) {
  const quant::Student student =
      test::student_of(test::awkward_network(), test::scheme(4, 4, Target::onnxruntime));
  try {
    export_onnx(test::for_target(student, Target::tensorrt), file("refused"), {});
    FAIL();
  } catch (const RefusedByTarget& refused) {
    EXPECT_EQ(refused.code(), ErrorCode::unsupported_model);
    const auto named = [&](const std::string& node) {
      return std::any_of(refused.refusals().begin(), refused.refusals().end(),
                         [&](const Refusal& r) { return r.node == node; });
    };
    EXPECT_TRUE(named("input.quantizer")) << refused.what();
    EXPECT_TRUE(named("a2_bn.quantizer")) << refused.what();
    EXPECT_FALSE(named("a1_relu.quantizer")) << "4-bit codes fit";
  }
  EXPECT_FALSE(fs::exists(file("refused")));
}

TEST(Tensorrt, RefusesWeightsWithZeroPoints) {
  QuantOptions options = test::scheme(8, 8, Target::tensorrt);
  options.weights.symmetric = Symmetry::no;
  const quant::Student student = test::student_of(test::awkward_network(), options);
  EXPECT_THROW(export_onnx(student, file("refused_too"), {}), RefusedByTarget);
}

// A layer by hand: scale 1, zero point 2, ReLU6 before it are the values 0 to 6 of codes 0 to 6.
TEST(Tensorrt, LimitsBelowEightBitsInFloat) {
  quant::Student student =
      test::student_of(test::awkward_network(), test::scheme(4, 4, Target::tensorrt));
  student.parameters.at("b1_relu6.quantizer.scale").fill_(0.5);
  student.parameters.at("b1_relu6.quantizer.zero_point").fill_(2);
  export_onnx(student, file("limits"), {});
  const formats::onnx::Model model = formats::onnx::read(file("limits"));
  bool found = false;
  for (const formats::onnx::Node& node : model.graph.nodes) {
    if (node.outputs[0] != "b1_relu6.quantizer.limited") continue;
    found = true;
    EXPECT_EQ(node.op_type, "Clip");
    EXPECT_EQ(initializer(model, node.inputs[1]).as<float>()[0], 0);
    EXPECT_EQ(initializer(model, node.inputs[2]).as<float>()[0], 6);
  }
  EXPECT_TRUE(found);
}

TEST(Generic, StoresFourBitsWhereFourBitsAre) {
  QuantOptions options = test::scheme(4, 4, Target::generic);
  options.weights.layer_bits = {{"a2", 3}, {"b1", 5}};
  const quant::Student student = test::student_of(test::awkward_network(), options);
  const ExportReport report = export_onnx(student, file("generic"), {});
  const formats::onnx::Model model = formats::onnx::read(file("generic"));
  EXPECT_EQ(model.opset, 21);
  EXPECT_EQ(model.ir_version, 10);
  for (const char* layer : {"a1", "a2", "b2"})
    EXPECT_EQ(initializer(model, layer + std::string(".weight.codes")).dtype, formats::DType::u4);
  for (const char* layer : {"stem", "b1", "fc"})
    EXPECT_EQ(initializer(model, layer + std::string(".weight.codes")).dtype, formats::DType::i8);
  EXPECT_EQ(initializer(model, "a1_relu.quantizer.zero_point").dtype, formats::DType::u4);
  for (const ExecutesAs& layer : report.layers)
    EXPECT_EQ(layer.executes_as,
              layer.layer.starts_with("a") || layer.layer == "b2" ? "float" : "int8")
        << layer.layer;
}

// QONNX turns every chain into a Quant node of the right width, and computes the same.
TEST(Qcdq, QonnxReadsTheWidths) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = test::scheme(3, 5, Target::qcdq);
  options.weights.symmetric = Symmetry::yes;
  const quant::Student student = test::student_of(test::layer_zoo(), options);
  export_onnx(student, file("qcdq"), {});
  const auto result = test::run_in_qonnx(file("qcdq"), test::normal({1, 3, 16, 16}, 7));
  if (!result) GTEST_SKIP() << "needs the Python package qonnx";
  EXPECT_LE(result->relative_error, 0.05);
  const auto count = [&](int width) {
    return std::count(result->widths.begin(), result->widths.end(), width);
  };
  EXPECT_EQ(count(3), 7);  // layers between the first and the last
  EXPECT_GE(count(5), 5);  // what they read
  EXPECT_EQ(count(3) + count(5) + count(8), static_cast<std::ptrdiff_t>(result->widths.size()));
}

}  // namespace
}  // namespace zsq::exporters::targets_test
