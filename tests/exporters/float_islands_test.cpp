// SPDX-License-Identifier: Apache-2.0
// Operators without an integer form stay float between quantized tensors, and are named.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exporters/registry.h"
#include "formats/onnx.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters {
namespace {

quant::Student student() {
  QuantOptions options;
  options.weights.num_bits = 8;
  options.activations.num_bits = 8;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = 64;
  return test::student_of(test::convnext_units(), options);
}

// Of values in float and in integers: the difference that a code of 8 bits makes here and there.
void expect_close(const at::Tensor& logits, const at::Tensor& expected) {
  EXPECT_LE((logits - expected).abs().max().item<double>(),
            0.02 * expected.abs().max().item<double>());
}

TEST(FloatIslands, AreNamed) {
  const auto floats = quant::float_tensors(student());
  for (const char* island : {"norm (LayerNorm)", "head_norm (LayerNorm)", "gelu (Gelu)"})
    EXPECT_EQ(std::count(floats.begin(), floats.end(), island), 1) << island;
}

TEST(FloatIslands, AreWrittenBetweenIntegerConvolutions) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const test::TempFolder folder;
  const auto path = folder / "islands.onnx";
  const quant::Student one = student();
  export_onnx(one, path, {});
  EXPECT_EQ(formats::onnx::read(path).opset, 17);
  const at::Tensor images = test::normal({8, 3, 16, 16}, 8);
  const at::Tensor expected = models::execute(one.graph, one.parameters, images).detach();
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  EXPECT_EQ(result.convs, result.integer_convs);
  expect_close(result.logits, expected);
  const models::Model reloaded =
      models::load(path, {.make_quantize_chain = quant::quantize_chain_factory()});
  expect_close(models::execute(reloaded.graph, reloaded.parameters, images).detach(), expected);
}

}  // namespace
}  // namespace zsq::exporters
