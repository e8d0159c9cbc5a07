// SPDX-License-Identifier: Apache-2.0
#include "exporters/restore_student.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "exporters/registry.h"
#include "formats/atomic_file.h"
#include "quant/calibration/bias_correction.h"
#include "tests/exporters/networks.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters {
namespace {

class RestoreStudent : public testing::Test {
 protected:
  static QuantOptions scheme(std::int64_t bits) {
    QuantOptions options;
    options.weights.num_bits = options.activations.num_bits = bits;
    options.activations.calibration_images = 16;
    return options;
  }

  // What `zsq export` starts from: the same structure with the weights of nobody.
  static quant::Student empty_student(models::Model teacher, QuantOptions options) {
    for (const std::string& name : teacher.parameters.names())
      teacher.parameters.set(name, teacher.parameters.at(name) * 0.5 + 0.25);
    options.weights.range = WeightRange::min_max;
    options.weights.rounding = WeightRounding::nearest;
    options.weights.range_every_step = false;
    options.bias_correction = BiasCorrection::none;
    return test::quantized(teacher, options);
  }

  // The ONNX file of the restored student has the bytes of the first one's.
  void expect_same_file(const models::Model& teacher, const quant::Student& student) const {
    export_onnx(student, folder_ / "first.onnx", {});
    export_safetensors(student, folder_ / "codes", {});
    quant::Student restored = empty_student(teacher, student.options);
    restore_student(formats::read_safetensors(folder_ / "codes"), restored);
    export_onnx(restored, folder_ / "second.onnx", {});
    EXPECT_EQ(formats::read_file(folder_ / "first.onnx"),
              formats::read_file(folder_ / "second.onnx"));
  }

  test::TempFolder folder_;
};

TEST_F(RestoreStudent, GivesTheSameFileAtEveryWidth) {
  for (const std::int64_t bits : {2, 3, 4, 5, 8})
    for (const models::Model& teacher : {test::awkward_network(), test::operator_zoo()})
      expect_same_file(teacher, test::student_of(teacher, scheme(bits)));
}

TEST_F(RestoreStudent, GivesTheSameFileWhateverTheGrids) {
  std::vector<QuantOptions> all(6, scheme(4));
  all[0].weights.level_tables = {LevelTable::integer, LevelTable::learned, LevelTable::flint};
  all[1].weights.per_channel = false;
  all[2].weights.symmetric = Symmetry::yes;
  all[3].target = Target::tensorrt;
  all[4].mode = Mode::paper;
  all[4].weights.range_every_step = true;
  all[5].weights.layer_bits = {{"stem", 8}, {"a1", 2}, {"b1", 7}};
  all[5].equalize = Equalization::all;
  all[5].weights.rounding = WeightRounding::squant;
  for (const QuantOptions& options : all)
    expect_same_file(test::awkward_network(), test::student_of(test::awkward_network(), options));
}

// Corrected biases are parameters that the network itself has not.
TEST_F(RestoreStudent, KeepsCorrectedBiases) {
  QuantOptions options = scheme(4);
  options.bias_correction = BiasCorrection::bn_statistics;
  const models::Model teacher = test::layer_zoo();
  expect_same_file(teacher, test::student_of(teacher, options));
}

TEST_F(RestoreStudent, UncalibratedQuantizersStaySo) {
  const models::Model teacher = test::awkward_network();
  expect_same_file(teacher, test::quantized(teacher, scheme(4)));
}

TEST_F(RestoreStudent, NamesWhatDoesNotFit) {
  const models::Model teacher = test::awkward_network();
  export_safetensors(test::student_of(teacher, scheme(4)), folder_ / "codes", {});
  const formats::SafetensorsFile whole = formats::read_safetensors(folder_ / "codes");
  const auto message = [&](const formats::SafetensorsFile& file, const QuantOptions& options) {
    quant::Student student = empty_student(teacher, options);
    try {
      restore_student(file, student);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(message(whole, scheme(4)), "");
  holds(message(whole, scheme(3)), "layer 'a1' has 4 bits in the file and 3 by the recipe");
  holds(message({}, scheme(4)), "how layers are stored");

  formats::SafetensorsFile without = whole;
  std::erase_if(without.tensors, [](const auto& t) { return t.first == "b1.weight.codes"; });
  holds(message(without, scheme(4)), "there is no tensor 'b1.weight.codes'");

  formats::SafetensorsFile cut = whole;
  for (auto& [name, array] : cut.tensors)
    if (name == "b1.weight.codes") {
      array.data.pop_back();
      --array.shape[0];
    }
  holds(message(cut, scheme(4)), "'b1.weight.codes' has 35 bytes for 72 codes of 4 bits");

  formats::SafetensorsFile wide = whole;
  for (auto& [name, array] : wide.tensors)
    if (name == "b1.weight.scale") array = {formats::DType::f32, {9}, std::vector<std::byte>(36)};
  holds(message(wide, scheme(4)), "'b1.weight.scale' has another shape");
}

}  // namespace
}  // namespace zsq::exporters
