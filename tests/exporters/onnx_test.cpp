// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/equal.h>

#include <algorithm>

#include "core/error.h"
#include "exporters/registry.h"
#include "formats/atomic_file.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/calibration/ranges.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::onnx_test {
namespace {

namespace fs = std::filesystem;

fs::path file(const std::string& name) {
  static const test::TempFolder folder;
  return folder / name;
}

at::Tensor logits_of(const quant::Student& student, const at::Tensor& images) {
  return models::execute(student.graph, student.parameters, images).detach();
}

std::int64_t count_of(const ExportReport& report, const std::string& op, const std::string& how) {
  return std::count_if(report.layers.begin(), report.layers.end(), [&](const ExecutesAs& layer) {
    return layer.op == op && layer.executes_as == how;
  });
}

double agreement(const at::Tensor& a, const at::Tensor& b) {
  return a.argmax(1).eq(b.argmax(1)).to(at::kDouble).mean().item<double>();
}

struct Scheme {
  std::int64_t weight_bits, activation_bits;
  Symmetry symmetric;
};

class DeployedStudent : public testing::TestWithParam<Scheme> {};

// Our fake quantization, onnxruntime and the integer model are three computations of one student.
TEST_P(DeployedStudent, RunsInIntegersAndEqualsTheStudent) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto [weight_bits, activation_bits, symmetric] = GetParam();
  QuantOptions options = test::scheme(weight_bits, activation_bits);
  options.weights.symmetric = symmetric;
  const quant::Student student = test::student_of(test::awkward_network(4), options);
  const fs::path path =
      file("w" + std::to_string(weight_bits) + std::string(enum_name(symmetric)) + ".onnx");
  const ExportReport report = export_onnx(student, path, {});
  EXPECT_EQ(report.bytes, static_cast<std::int64_t>(fs::file_size(path)));
  const bool zero_points = symmetric == Symmetry::no;
  EXPECT_EQ(count_of(report, "Conv2d", zero_points ? "int8, slow" : "int8"), 5);
  EXPECT_EQ(count_of(report, "Linear", zero_points ? "int8, slow" : "int8"), 1);

  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  EXPECT_EQ(result.convs, 5);
  EXPECT_EQ(result.integer_convs, 5);
  EXPECT_EQ(result.integer_gemms, 1);
  EXPECT_EQ(result.codes_off, 0) << "of " << result.codes << ", by up to " << result.largest_off;
  EXPECT_TRUE(at::equal(result.logits, result.integer_logits));

  const at::Tensor expected = logits_of(student, images);
  test::expect_same_up_to_flips(result.logits, expected, student);
  EXPECT_GE(agreement(result.logits, expected), 31.0 / 32);
}

INSTANTIATE_TEST_SUITE_P(
    Bits, DeployedStudent,
    testing::Values(Scheme{8, 8, Symmetry::automatic}, Scheme{8, 8, Symmetry::no},
                    Scheme{7, 7, Symmetry::automatic}, Scheme{4, 4, Symmetry::automatic},
                    Scheme{4, 4, Symmetry::yes}, Scheme{3, 3, Symmetry::automatic},
                    Scheme{2, 2, Symmetry::automatic}));

// Each channel with a table of its own: the levels are what the file holds.
TEST(ExportOnnx, LevelTablesRunInIntegers) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  for (const std::int64_t bits : {3, 4}) {
    QuantOptions options = test::scheme(bits, 8);
    options.first_last_bits = 0;
    options.weights.rounding = WeightRounding::squant;
    options.weights.level_tables = {LevelTable::integer, LevelTable::power_of_two,
                                    LevelTable::learned};
    const quant::Student student = test::student_of(test::awkward_network(4), options);
    const fs::path path = file("tables" + std::to_string(bits) + ".onnx");
    export_onnx(student, path, {});
    const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
    const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
    EXPECT_EQ(result.integer_convs, 5);
    EXPECT_EQ(result.codes_off, 0);
    test::expect_same_up_to_flips(result.logits, logits_of(student, images), student);
  }
}

// Every layer with bits of its own: two neighbours never agree.
TEST(ExportOnnx, LayersOfDifferentBitsRunInIntegers) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = test::scheme(4, 4);
  options.weights.layer_bits = {{"stem", 8}, {"a1", 2}, {"a2", 7}, {"b1", 5}, {"b2", 3}, {"fc", 6}};
  options.activations.layer_bits = {{"a1", 6}, {"a2", 3}, {"b1", 5}, {"b2", 7}, {"fc", 8}};
  const quant::Student student = test::student_of(test::awkward_network(4), options);
  const fs::path path = file("mixed.onnx");
  const ExportReport report = export_onnx(student, path, {});
  EXPECT_EQ(count_of(report, "Conv2d", "int8"), 5);
  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  EXPECT_EQ(result.integer_convs, 5);
  EXPECT_EQ(result.codes_off, 0) << "of " << result.codes << ", by up to " << result.largest_off;
  EXPECT_TRUE(at::equal(result.logits, result.integer_logits));
  const at::Tensor expected = logits_of(student, images);
  test::expect_same_up_to_flips(result.logits, expected, student);
  EXPECT_GE(agreement(result.logits, expected), 31.0 / 32);

  // Weights of b bits have no more than 2^b values in a channel.
  const formats::onnx::Model model = formats::onnx::read(path);
  for (const auto& [layer, bits] : options.weights.layer_bits) {
    const auto* codes = formats::find(model.graph.initializers, layer + ".weight.codes");
    ASSERT_TRUE(codes) << layer;
    const at::Tensor rows = models::to_tensor(*codes).to(at::kInt).flatten(1);
    std::int64_t most = 0;
    for (std::int64_t c = 0; c < rows.size(0); ++c)
      most = std::max(most, std::get<0>(at::_unique(rows[c])).numel());
    EXPECT_LE(most, std::int64_t{1} << bits) << layer;
    EXPECT_GT(most, 1) << layer;
  }
}

TEST(ExportOnnx, EveryOperatorIsWritten) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const quant::Student student = test::student_of(test::operator_zoo(3), test::scheme(4, 8));
  const fs::path path = file("zoo.onnx");
  export_onnx(student, path, {});
  EXPECT_EQ(formats::onnx::read(path).opset, 13);
  const at::Tensor images = test::normal({8, 3, 16, 16}, 8);
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  EXPECT_EQ(result.convs, result.integer_convs);
  EXPECT_EQ(result.codes_off, 0);
  test::expect_same_up_to_flips(result.logits, logits_of(student, images), student);
}

TEST(ExportOnnx, PublishedPlacementExportsToo) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = test::scheme(4, 4);
  options.mode = Mode::paper;
  options.weights.range_every_step = true;
  export_onnx(test::student_of(test::operator_zoo(), options), file("paper_zoo.onnx"), {});
  EXPECT_EQ(formats::onnx::read(file("paper_zoo.onnx")).opset, 17);  // HardSwish as it is
  const quant::Student student = test::student_of(test::awkward_network(), options);
  const fs::path path = file("paper.onnx");
  const ExportReport report = export_onnx(student, path, {});
  // The stem reads the float image, and nothing quantizes what goes into the additions.
  EXPECT_EQ(report.layers[0].executes_as, "float");
  EXPECT_EQ(report.layers[0].reason, "its input is not quantized");
  EXPECT_EQ(report.layers[2].reason, "its output goes to Add without a quantizer");
  const at::Tensor images = test::normal({8, 3, 16, 16}, 9);
  const at::Tensor expected = logits_of(student, images);
  const at::Tensor logits = test::run_in_onnxruntime(path, images).logits;
  EXPECT_LE((logits - expected).abs().max().item<double>(),
            0.02 * expected.abs().max().item<double>());
}

TEST(ExportOnnx, UncalibratedStudentHasFloatActivations) {
  const models::Model teacher = test::awkward_network();
  const quant::Student student = test::quantized(teacher, test::scheme(8, 8));
  const ExportReport report = export_onnx(student, file("uncalibrated.onnx"), {});
  EXPECT_EQ(count_of(report, "Conv2d", "int8"), 0);
}

TEST(ExportOnnx, ReloadsAsTheSameFunction) {
  for (const models::Model& teacher : {test::awkward_network(), test::operator_zoo()}) {
    const quant::Student student = test::student_of(teacher, test::scheme(4, 4));
    const fs::path path = file("reload.onnx");
    export_onnx(student, path, {});
    models::LoadOptions options;
    options.make_quantize_chain = quant::quantize_chain_factory();
    const models::Model reloaded = models::load(path, options);
    const at::Tensor images = test::normal({8, 3, 16, 16}, 10);
    const at::Tensor logits = models::execute(reloaded.graph, reloaded.parameters, images).detach();
    test::expect_same_up_to_flips(logits, logits_of(student, images), student);
  }
}

TEST(ExportOnnx, TwoExportsAreTheSameBytes) {
  const quant::Student student = test::student_of(test::operator_zoo(), test::scheme(4, 4));
  const Metadata metadata{{"scheme", "\"W4A4\""}, {"seed", "1"}};
  export_onnx(student, file("one.onnx"), metadata);
  export_onnx(student, file("two.onnx"), metadata);
  EXPECT_EQ(formats::read_file(file("one.onnx")), formats::read_file(file("two.onnx")));
  const formats::onnx::Model written = formats::onnx::read(file("one.onnx"));
  EXPECT_EQ(written.metadata, metadata);
  EXPECT_EQ(written.producer_name, "zsq");
  ASSERT_EQ(written.graph.inputs.size(), 1u);
  EXPECT_EQ(written.graph.inputs[0].shape[0].symbol, "N");
  EXPECT_EQ(written.graph.inputs[0].shape[1].value, 3);
  EXPECT_EQ(written.graph.outputs[0].name, "logits");
  EXPECT_EQ(written.graph.outputs[0].shape[1].value, 5);
}

// ReLU6 before a quantizer of step 1 and zero point 2 is nothing but the codes 2 to 8.
TEST(ExportOnnx, ClipsBecomeCodeBounds) {
  quant::Student student = test::student_of(test::awkward_network(), test::scheme(4, 4));
  student.parameters.at("b1_relu6.quantizer.scale").fill_(1);
  student.parameters.at("b1_relu6.quantizer.zero_point").fill_(2);
  export_onnx(student, file("clips.onnx"), {});
  const formats::onnx::Model model = formats::onnx::read(file("clips.onnx"));
  bool found = false;
  for (const formats::onnx::Node& node : model.graph.nodes) {
    EXPECT_NE(node.op_type, "Relu");
    if (node.op_type != "Clip" || node.inputs[0] != "b1_relu6.quantizer.codes") continue;
    found = true;
    EXPECT_EQ(formats::find(model.graph.initializers, node.inputs[1])->as<std::uint8_t>()[0], 2);
    EXPECT_EQ(formats::find(model.graph.initializers, node.inputs[2])->as<std::uint8_t>()[0], 8);
  }
  EXPECT_TRUE(found);
}

// After a Flatten the same grid stands again: no value reaches it that the first did not clamp.
TEST(ExportOnnx, NoClampWhereNothingIsBeyond) {
  QuantOptions options = test::scheme(4, 4);
  options.first_last_bits = 0;
  export_onnx(test::student_of(test::operator_zoo(), options), file("clamps.onnx"), {});
  int first = 0, repeated = 0;
  for (const formats::onnx::Node& node : formats::onnx::read(file("clamps.onnx")).graph.nodes) {
    if (node.op_type != "Clip" && node.op_type != "Min") continue;
    first += node.inputs[0].starts_with("pool.quantizer.codes");
    repeated += node.inputs[0].starts_with("flat.quantizer.codes");
  }
  EXPECT_EQ(first, 1);
  EXPECT_EQ(repeated, 0);
}

TEST(ExportOnnx, UnwritablePlaceIsNamed) {
  const quant::Student student = test::student_of(test::awkward_network(), test::scheme(4, 4));
  try {
    export_onnx(student, file("no_such_folder") / "model.onnx", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace zsq::exporters::onnx_test
