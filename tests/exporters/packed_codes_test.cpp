// SPDX-License-Identifier: Apache-2.0
// A packed file is the same network as the file that is not packed: the same int8 weights, and in
// onnxruntime the same integer layers and the same logits, bit for bit.
#include "exporters/packed_codes.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exporters/registry.h"
#include "models/load.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::packed_codes_test {
namespace {

using Ints = std::vector<std::int64_t>;

at::Tensor integers(const Ints& values) { return at::tensor(values, at::kInt); }

template <class T>
Ints values_of(const formats::Array& array) {
  const auto values = array.as<T>();
  return {values.begin(), values.end()};
}

// Two channels share a table; a level that no code has may leave int8.
TEST(PackCodes, ByHand) {
  const auto codes = integers({-8, 0, 127, 3, 1, 3, 0, -8, 0}).view({3, 3});
  const auto levels = integers({-8, 0, 127, 200, 0, 1, 2, 3, -8, 0, 127, 200}).view({3, 4});
  const auto packed = pack_codes(codes, levels);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->ranks.shape, (Ints{3, 3}));
  EXPECT_EQ(values_of<std::uint8_t>(packed->ranks), (Ints{0x10, 0x32, 0x31, 0x01, 0x01}));
  EXPECT_EQ(packed->offsets.shape, (Ints{3, 1}));
  EXPECT_EQ(values_of<std::uint8_t>(packed->offsets), (Ints{0, 4, 0}));
  EXPECT_EQ(values_of<std::int8_t>(packed->levels), (Ints{-8, 0, 127, 127, 0, 1, 2, 3}));
}

TEST(PackCodes, NothingIfACodeIsNoLevel) {
  EXPECT_TRUE(pack_codes(integers({0, 4}).view({1, 2}), integers({-4, 0, 4}).view({1, 3})));
  EXPECT_FALSE(pack_codes(integers({0, 3}).view({1, 2}), integers({-4, 0, 4}).view({1, 3})));
  EXPECT_FALSE(pack_codes(integers({0, 5}).view({1, 2}), integers({-4, 0, 4}).view({1, 3})));
}

TEST(PackCodes, ManyTablesHaveWideOffsets) {
  const auto levels = at::arange(40, at::kInt).view({40, 1}).add(at::arange(16, at::kInt));
  const auto packed = pack_codes(levels, levels);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->offsets.dtype, formats::DType::u16);
  EXPECT_EQ(values_of<std::uint16_t>(packed->offsets)[39], 39 * 16);
}

struct Case {
  std::string name;
  models::Model (*network)(std::uint64_t seed);
  std::int64_t bits;
  std::vector<LevelTable> tables;
  std::vector<LayerBits> layer_bits;
};
std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

class PackedFile : public testing::TestWithParam<Case> {
 protected:
  static quant::Student student() {
    const Case& c = GetParam();
    QuantOptions options;
    options.weights.num_bits = c.bits;
    options.weights.rounding = WeightRounding::squant;
    options.weights.level_tables = c.tables;
    options.weights.layer_bits = c.layer_bits;
    options.activations.num_bits = 8;
    options.activations.calibration_images = 32;
    return test::student_of(c.network(4), options);
  }
  static std::int64_t packed_layers(const std::filesystem::path& path) {
    std::int64_t count = 0;
    for (const auto& [name, array] : formats::onnx::read(path).graph.initializers)
      count += array.dtype == formats::DType::u4;
    return count;
  }
};

TEST_P(PackedFile, IsTheSameNetwork) {
  const test::TempFolder folder;
  const auto plain = folder / "plain.onnx", packed = folder / "packed.onnx";
  const quant::Student network = student();
  export_onnx(network, plain, {});
  export_onnx(network, packed, {}, {.packed = true});
  EXPECT_EQ(packed_layers(plain), 0);
  EXPECT_GT(packed_layers(packed), 1);
  EXPECT_EQ(formats::onnx::read(plain).opset, 13);
  EXPECT_EQ(formats::onnx::read(packed).opset, 21);
  EXPECT_EQ(formats::onnx::read(packed).ir_version, 10);

  models::LoadOptions options;
  options.make_quantize_chain = quant::quantize_chain_factory();
  const auto a = models::load(plain, options), b = models::load(packed, options);
  EXPECT_EQ(a.parameters.names(), b.parameters.names());
  for (const std::string& name : a.parameters.names())
    EXPECT_TRUE(at::equal(a.parameters.at(name), b.parameters.at(name))) << name;

  ZSQ_SKIP_WITHOUT_PYTHON();
  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  const auto expected = test::run_in_onnxruntime(plain, images);
  const auto result = test::run_in_onnxruntime(packed, images);
  EXPECT_TRUE(at::equal(result.logits, expected.logits));
  EXPECT_TRUE(at::equal(result.integer_logits, expected.integer_logits));
  EXPECT_EQ(result.integer_convs, expected.integer_convs);
  EXPECT_EQ(result.integer_gemms, expected.integer_gemms);
  EXPECT_EQ(result.codes_off, 0);
  EXPECT_EQ(test::structure_faults(packed), test::structure_faults(plain));
}

const std::vector<LayerBits> kMixed{{"a1", 2}, {"a2", 7}, {"b1", 4}, {"b2", 3}, {"fc", 4}};

INSTANTIATE_TEST_SUITE_P(
    Students, PackedFile,
    testing::Values(
        Case{"uniform4", test::awkward_network, 4, {}, {}},
        Case{"uniform2", test::layer_zoo, 2, {}, {}},
        Case{"tables4", test::layer_zoo, 4, {LevelTable::integer, LevelTable::normal}, {}},
        Case{"tables3", test::awkward_network, 3, {LevelTable::flint, LevelTable::learned}, {}},
        Case{"mixed", test::awkward_network, 8, {}, kMixed},
        Case{"mixed_tables", test::awkward_network, 8, {LevelTable::normal}, kMixed}),
    [](const auto& info) { return info.param.name; });

// The scale of b1's third channel is enlarged when its BatchNorm is folded
// (quant/fold_batch_norm.h): of its codes, small ones remain, which are not among the levels.
TEST(ExportPacked, ALayerThatLeftItsTableStaysInt8) {
  QuantOptions options;
  options.weights.level_tables = {LevelTable::normal};
  options.activations.calibration_images = 16;
  const test::TempFolder folder;
  export_onnx(test::student_of(test::awkward_network(), options), folder / "model.onnx", {},
              {.packed = true});
  const auto arrays = formats::onnx::read(folder / "model.onnx").graph.initializers;
  EXPECT_TRUE(formats::find(arrays, "a2.weight.ranks"));
  EXPECT_FALSE(formats::find(arrays, "b1.weight.ranks"));
  const auto* codes = formats::find(arrays, "b1.weight.codes");
  ASSERT_TRUE(codes);
  EXPECT_EQ(codes->dtype, formats::DType::i8);
}

}  // namespace
}  // namespace zsq::exporters::packed_codes_test
