// SPDX-License-Identifier: Apache-2.0
// ncnn's files keep its documented rules, and ncnn computes the student.
#include "exporters/ncnn/ncnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/error.h"
#include "exporters/ncnn/permutations.h"
#include "exporters/registry.h"
#include "formats/atomic_file.h"
#include "quant/fold_batch_norm.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::ncnn_test {
namespace {

namespace fs = std::filesystem;

fs::path file(const std::string& name) {
  static const test::TempFolder folder;
  return folder / (name + ".param");
}

// The lines of layers, and the first that starts with this.
std::vector<std::string> lines_of(const fs::path& param) {
  std::vector<std::string> lines;
  std::istringstream text(formats::read_text(param));
  for (std::string line; std::getline(text, line);) lines.push_back(line + " ");
  return lines;
}
std::string line_of(const fs::path& param, const std::string& start) {
  for (const std::string& line : lines_of(param))
    if (line.starts_with(start + " ")) return line;
  return "";
}
std::ptrdiff_t count(const fs::path& param, const std::string& type) {
  const auto lines = lines_of(param);
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(type + " "); });
}

// ncnn rounds halves the other way and multiplies where the student divides, and its depthwise
// kernels multiply by a reciprocal that is off by 2^-12: now and then a code differs, which moves
// few others.
void expect_same(const quant::Student& student, const std::string& name, const at::Tensor& images) {
  SCOPED_TRACE(name);
  const fs::path path = file(name);
  const ExportReport report = export_ncnn(student, path, {});
  const at::Tensor expected =
      test::logits_in_onnxruntime(student, file(name).replace_extension(".onnx"), images);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"use_packing_layout=false"}}) {
    const auto result = test::check_ncnn(path, images, options);
    if (!result) GTEST_SKIP() << "needs the Python package ncnn: run scripts/install_deps.sh";
    EXPECT_EQ(result->faults, "") << name;
    const at::Tensor gap = (result->logits - expected).abs();
    EXPECT_LE(gap.max().item<double>(), 2 * test::code_worth(student))
        << gap.max().item<double>() / test::code_worth(student);
    EXPECT_LE(gap.mean().item<double>(), 0.2 * test::code_worth(student))
        << gap.mean().item<double>() / test::code_worth(student);
    EXPECT_EQ(result->integer_layers, result->layers) << name;
  }
  for (const ExecutesAs& layer : report.layers) EXPECT_EQ(layer.executes_as, "int8") << layer.layer;
}

using Bits = std::pair<std::int64_t, std::int64_t>;
class Ncnn : public testing::TestWithParam<Bits> {};

TEST_P(Ncnn, ComputesTheStudentInInt8) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const auto [weight_bits, activation_bits] = GetParam();
  const at::Tensor images = test::normal({32, 3, 16, 16}, 7);
  int networks = 0;
  for (const models::Model& teacher :
       {test::awkward_network(4), test::layer_zoo(), test::operator_zoo(), test::convnext_units()})
    expect_same(test::student_of(teacher, test::scheme(weight_bits, activation_bits, Target::ncnn)),
                "w" + std::to_string(weight_bits) + "a" + std::to_string(activation_bits) + "_" +
                    std::to_string(++networks),
                images);
}

INSTANTIATE_TEST_SUITE_P(Bits, Ncnn, testing::Values(Bits{8, 8}, Bits{4, 4}, Bits{4, 8}),
                         [](const auto& info) {
                           return "w" + std::to_string(info.param.first) + "a" +
                                  std::to_string(info.param.second);
                         });

// A run for onnxruntime quantizes what additions read, too, and with zero points: no value moves.
TEST(Ncnn, HoldsWhatAnotherTargetQuantized) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  QuantOptions options = test::scheme(4, 4, Target::onnxruntime);
  options.image_bits = options.first_last_bits = 7;  // 8 bits fit what no layer reads
  const quant::Student student = test::student_of(test::awkward_network(4), options);
  expect_same(test::for_target(student, Target::ncnn), "of_onnxruntime",
              test::normal({32, 3, 16, 16}, 7));
  EXPECT_GT(count(file("of_onnxruntime"), "UnaryOp"), 2);
  EXPECT_EQ(count(file("of_onnxruntime"), "BinaryOp"),
            2 + 2 * count(file("of_onnxruntime"), "UnaryOp"));
}

TEST(Ncnn, ItsOwnRunsQuantizeInLayersAlone) {
  const quant::Student student =
      test::student_of(test::awkward_network(4), test::scheme(4, 4, Target::ncnn));
  export_ncnn(student, file("own"), {});
  EXPECT_EQ(count(file("own"), "UnaryOp"), 0);
  EXPECT_EQ(count(file("own"), "BinaryOp"), 2);  // the additions of the blocks
  // ReLU6 joins the depthwise convolution, which gives codes to the layer after it.
  const std::string line = line_of(file("own"), "ConvolutionDepthWise b1");
  EXPECT_NE(line.find(" 8=101 "), std::string::npos) << line;
  EXPECT_NE(line.find(" 9=3 "), std::string::npos) << line;
  EXPECT_NE(line.find(" -23310=2,0.00000000e+00,"), std::string::npos) << line;
}

TEST(Ncnn, RefusesCodesBeyondItsOwn) {
  const quant::Student asymmetric =
      test::student_of(test::awkward_network(), test::scheme(4, 4, Target::onnxruntime));
  const quant::Student lowest =
      test::student_of(test::awkward_network(), test::scheme(4, 4, Target::tensorrt));
  for (const quant::Student& student : {asymmetric, lowest}) {
    try {
      export_ncnn(test::for_target(student, Target::ncnn), file("refused"), {});
      FAIL();
    } catch (const RefusedByTarget& refused) {
      const auto& all = refused.refusals();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Refusal& r) {
        return r.node == "input.quantizer";
      })) << refused.what();
      EXPECT_TRUE(std::none_of(all.begin(), all.end(), [](const Refusal& r) {
        return r.node == "a1_relu.quantizer";
      })) << "4-bit codes fit";
    }
  }
  EXPECT_FALSE(fs::exists(file("refused")));
  EXPECT_FALSE(fs::exists(file("refused").replace_extension(".bin")));
}

TEST(Ncnn, RefusesWhatItHasNoLayerFor) {
  test::NetworkBuilder net({3, 16, 16});
  models::NodeId x = net.conv("conv", net.input(), 3, 8);
  x = net.op("dilated", models::MaxPool{{3, 3}, {1, 1}, {}, {2, 2}}, {x});
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  const auto student =
      test::student_of(net.finish(net.linear("fc", x, 8, 5), 5), test::scheme(8, 8, Target::ncnn));
  try {
    export_ncnn(student, file("dilated"), {});
    FAIL();
  } catch (const RefusedByTarget& refused) {
    ASSERT_EQ(refused.refusals().size(), 1U);
    EXPECT_EQ(refused.refusals()[0].node, "dilated");
  }
}

TEST(Ncnn, OnlyWritesParamFiles) {
  const quant::Student student =
      test::student_of(test::awkward_network(4), test::scheme(8, 8, Target::ncnn));
  EXPECT_THROW(export_ncnn(student, file("a").replace_extension(".onnx"), {}), Error);
}

// The first layer's bytes by hand: tag, codes, bias, 1 / scales, 1 / step of its input.
TEST(Ncnn, HoldsTheStudentsOwnCodes) {
  const quant::Student student =
      test::student_of(test::awkward_network(4), test::scheme(4, 4, Target::ncnn));
  export_ncnn(student, file("codes"), {});
  const std::vector<std::byte> bin = formats::read_file(file("codes").replace_extension(".bin"));
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const quant::IntegerWeights stem = quant::integer_weights(student, sites.at(0));
  ASSERT_EQ(student.graph[sites[0].layer].name, "stem");
  std::uint32_t tag = 0;
  std::memcpy(&tag, bin.data(), 4);
  EXPECT_EQ(tag, 0x000D4B38U);
  const at::Tensor expected = (stem.codes - stem.zero_point.view({-1, 1, 1, 1})).contiguous();
  const auto* codes = expected.const_data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i < 216; ++i)
    ASSERT_EQ(static_cast<std::int8_t>(bin[4 + static_cast<std::size_t>(i)]), codes[i]) << i;
  std::array<float, 17> values{};
  std::memcpy(values.data(), bin.data() + 220, sizeof(values));
  const float input_step = student.parameters.at("input.quantizer.scale").item<float>();
  for (std::int64_t c = 0; c < 8; ++c) {
    const float bias_step = input_step * stem.scale[c].item<float>();
    EXPECT_NEAR(values[static_cast<std::size_t>(c)], stem.bias[c].item<float>(), bias_step / 2);
    EXPECT_EQ(values[static_cast<std::size_t>(8 + c)], 1 / stem.scale[c].item<float>());
  }
  EXPECT_EQ(values[16], 1 / input_step);
}

// Sums that leave int32 once Winograd's kernel multiplies them by 576.
models::Model large_sums(std::int64_t channels) {
  test::NetworkBuilder net({channels, 8, 8});
  models::NodeId x = net.conv("conv", net.input(), channels, 16);
  net.at("conv.weight").fill_(0.01);
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  return net.finish(net.linear("fc", x, 16, 5), 5);
}

TEST(Ncnn, KeepsLargeSumsOutOfWinograd) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  for (const std::int64_t channels : {16, 32}) {  // 127 * 127 * 9 * 576 * 25.7 is 2^31
    quant::Student student =
        test::student_of(large_sums(channels), test::scheme(8, 8, Target::ncnn));
    const std::string name = "large_" + std::to_string(channels);
    const at::Tensor images = at::full({2, channels, 8, 8}, 5.0);
    expect_same(student, name, images);
    EXPECT_EQ(line_of(file(name), "Convolution conv").find(" 31=64 ") != std::string::npos,
              channels == 32);
  }
}

TEST(Ncnn, PermutationsAreNumbered) {
  EXPECT_EQ(ncnn::permutation({0, 1, 2}), 0);
  EXPECT_EQ(ncnn::permutation({1, 2, 0}), 3);  // C H W -> H W C is CWH from the innermost on
  EXPECT_EQ(ncnn::permutation({2, 0, 1}), 4);
  EXPECT_EQ(ncnn::permutation({1, 0, 2, 3}), 6);
  EXPECT_EQ(ncnn::permutation({1, 0}), 1);
}

}  // namespace
}  // namespace zsq::exporters::ncnn_test
