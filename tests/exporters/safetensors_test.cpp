// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exporters/registry.h"
#include "formats/atomic_file.h"
#include "models/load.h"
#include "tests/exporters/networks.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::safetensors_test {
namespace {

std::filesystem::path file(const std::string& name) {
  static const test::TempFolder folder;
  return folder / name;
}

QuantOptions scheme(std::int64_t bits) {
  QuantOptions options;
  options.weights.num_bits = bits;
  options.activations.num_bits = bits;
  options.activations.calibration_images = 16;
  return options;
}

// Follows the file's own 'how_to_read' and nothing else.
at::Tensor dequantized(const formats::SafetensorsFile& stored, const std::string& layer) {
  const auto about = nlohmann::json::parse(stored.metadata.at("layers")).at(layer);
  const auto shape = about.at("shape").get<std::vector<std::int64_t>>();
  const bool packed = about.at("bits").get<int>() <= 4;
  const auto bytes = formats::find(stored.tensors, layer + ".weight.codes")->as<std::uint8_t>();
  const auto scales = formats::find(stored.tensors, layer + ".weight.scale")->as<float>();
  const auto* zeros = formats::find(stored.tensors, layer + ".weight.zero_point");
  const auto* levels = formats::find(stored.tensors, layer + ".weight.levels");
  const auto* index = formats::find(stored.tensors, layer + ".weight.level_index");
  std::int64_t count = 1;
  for (const std::int64_t side : shape) count *= side;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = i / (values.size() / static_cast<std::size_t>(shape[0]));
    const int code = packed ? bytes[i / 2] >> (i % 2 ? 4 : 0) & 15 : bytes[i];
    const int level =
        levels ? levels->as<std::int8_t>()[index->as<std::uint8_t>()[channel] * 16 + code]
               : code + about.at("qmin").get<int>() - zeros->as<std::int32_t>()[channel];
    values[i] = static_cast<float>(level) * scales[channel];
  }
  return models::to_tensor(formats::Array::from<float>(formats::DType::f32, shape, values));
}

TEST(ExportSafetensors, CodesGiveTheStudentsWeightsExactly) {
  for (const std::int64_t bits : {2, 3, 4, 8, 0}) {
    QuantOptions options = scheme(bits > 0 ? bits : 4);
    if (bits == 0) options.weights.level_tables = {LevelTable::integer, LevelTable::learned};
    const quant::Student student = test::student_of(test::awkward_network(), options);
    const auto path = file("codes.safetensors");
    const ExportReport report = export_safetensors(student, path, {{"seed", "3"}});
    EXPECT_EQ(report.bytes, static_cast<std::int64_t>(std::filesystem::file_size(path)));
    const formats::SafetensorsFile stored = formats::read_safetensors(path);
    EXPECT_EQ(stored.metadata.at("seed"), "3");
    // What reads version 1 would misread level tables.
    EXPECT_TRUE(stored.metadata.at("format").ends_with(bits > 0 ? "version 1" : "version 2"));
    for (const quant::WeightSite& site : quant::weight_sites(student)) {
      const at::Tensor expected =
          site.op->forward({student.parameters.at(site.parameter)}, student.parameters);
      const std::string& layer = student.graph[site.layer].name;
      EXPECT_TRUE(at::equal(dequantized(stored, layer), expected)) << layer << ", bits " << bits;
    }
  }
}

TEST(ExportSafetensors, HoldsEveryOtherParameterOnce) {
  const quant::Student student = test::student_of(test::awkward_network(), scheme(4));
  const auto path = file("rest.safetensors");
  export_safetensors(student, path, {});
  const formats::SafetensorsFile stored = formats::read_safetensors(path);
  for (const std::string& name : student.parameters.names()) {
    const bool weight = name.find(".weight") != std::string::npos;
    const formats::Array* array = formats::find(stored.tensors, name);
    EXPECT_EQ(array == nullptr, weight) << name;
    if (array) {
      EXPECT_TRUE(at::equal(models::to_tensor(*array).to(at::kFloat),
                            student.parameters.at(name).to(at::kFloat)))
          << name;
    }
  }
  const auto quantizers = nlohmann::json::parse(stored.metadata.at("quantizers"));
  EXPECT_EQ(quantizers.at("input.quantizer").at("bits"), 8);
}

TEST(ExportSafetensors, TwoExportsAreTheSameBytes) {
  const quant::Student student = test::student_of(test::awkward_network(), scheme(4));
  export_safetensors(student, file("one.safetensors"), {});
  export_safetensors(student, file("two.safetensors"), {});
  EXPECT_EQ(formats::read_file(file("one.safetensors")),
            formats::read_file(file("two.safetensors")));
}

// Stem and fc have 8 bits and no zero points, the other layers 4 with one a channel; by hand.
TEST(ParameterBytes, CountsBits) {
  const models::Model teacher = test::awkward_network();
  const quant::Student student = test::student_of(teacher, scheme(4));
  const SizeReport report = parameter_bytes(teacher, student);
  const std::int64_t stem = 8 * 27, a = 8 * 72, b1 = 8 * 9, b2 = 16 * 8, fc = 80;
  const std::int64_t batch_norms = 4 * (8 * 4 + 16 * 2);
  EXPECT_EQ(report.fp32_bytes, 4 * (stem + 2 * a + b1 + b2 + fc + 5 + batch_norms));
  const std::int64_t eight_bits = stem + fc, four_bits = 2 * a + b1 + b2 + (8 * 3 + 16);
  const std::int64_t channels = 8 * 4 + 16 + 5;
  EXPECT_EQ(report.quantized_bytes, eight_bits + four_bits / 2 + 8 * channels + 4 * 4 * 16);
}

// `normal` both ways round at most: two tables a layer, however many channels it has. A layer pays
// 16 bytes for each and one byte a channel, and has no zero points.
TEST(ParameterBytes, CountsEachLevelTableOnce) {
  const models::Model teacher = test::awkward_network();
  QuantOptions options = scheme(4);
  const std::int64_t uniform =
      parameter_bytes(teacher, test::student_of(teacher, options)).quantized_bytes;
  options.weights.level_tables = {LevelTable::normal};
  const quant::Student student = test::student_of(teacher, options);
  export_safetensors(student, file("tables.safetensors"), {});
  const formats::SafetensorsFile stored = formats::read_safetensors(file("tables.safetensors"));
  std::int64_t expected = uniform;
  int layers = 0;
  for (const quant::WeightSite& site : quant::weight_sites(student)) {
    const std::string name = student.graph[site.layer].name + ".weight";
    const auto* levels = formats::find(stored.tensors, name + ".levels");
    EXPECT_NE(levels == nullptr, formats::find(stored.tensors, name + ".zero_point") == nullptr);
    if (!levels) continue;
    ++layers;
    const std::int64_t channels = student.parameters.at(site.parameter).size(0);
    EXPECT_GT(channels, 2);
    EXPECT_LE(levels->shape[0], 2) << name;
    EXPECT_EQ(levels->shape[1], 16);
    expected += levels->element_count() + channels - channels / 2;
  }
  EXPECT_EQ(layers, 4);
  EXPECT_EQ(parameter_bytes(teacher, student).quantized_bytes, expected);
}

}  // namespace
}  // namespace zsq::exporters::safetensors_test
