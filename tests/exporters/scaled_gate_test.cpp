// SPDX-License-Identifier: Apache-2.0
// A gate with a scale per channel runs in integers in onnxruntime and in float in other runtimes.
#include "exporters/scaled_gate.h"

#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "exporters/registry.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters::scaled_gate_test {
namespace {

// The stem of the zoo ends in HardSwish; its channels get widths from 1/8 to 16.
quant::Student student() {
  auto teacher = test::layer_zoo();
  const auto widths = at::linspace(-3, 4, 8).exp2();
  teacher.parameters.set("stem_bn.gamma", widths);
  teacher.parameters.set("stem_bn.beta", widths.div(2));
  auto one = test::student_of(teacher, test::scheme(8, 8));
  const auto& gate = one.graph[one.graph.id_of("stem_swish.gate")];
  EXPECT_TRUE(gate.params.contains("scale"));
  return one;
}

void expect_in_onnxruntime(const quant::Student& one) {
  const test::TempFolder folder;
  const auto path = folder / "gates.onnx";
  export_onnx(one, path, {});
  const at::Tensor images = test::normal({16, 3, 16, 16}, 8);
  const at::Tensor expected = models::execute(one.graph, one.parameters, images).detach();
  const test::RuntimeResult result = test::run_in_onnxruntime(path, images);
  test::expect_same_up_to_flips(result.logits, expected, one);
  const bool integers = one.options.target == Target::onnxruntime;
  EXPECT_TRUE(!integers || result.convs == result.integer_convs);
  const auto reloaded =
      models::load(path, {.make_quantize_chain = quant::quantize_chain_factory()});
  test::expect_same_up_to_flips(
      models::execute(reloaded.graph, reloaded.parameters, images).detach(), expected, one);
}

TEST(ScaledGate, RunsInIntegersInOnnxruntime) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  expect_in_onnxruntime(student());
}

TEST(ScaledGate, RunsInFloatInOtherFiles) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  expect_in_onnxruntime(test::for_target(student(), Target::openvino));
}

TEST(ScaledGate, IsRefusedByTargetsWithoutOne) {
  const auto one = student();
  try {
    require_plain_gates(one.graph, "ncnn");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    EXPECT_NE(std::string(error.what()).find("stem_swish.gate"), std::string::npos);
  }
  require_plain_gates(test::student_of(test::convnext_units(), test::scheme(8, 8)).graph, "ncnn");
}

}  // namespace
}  // namespace zsq::exporters::scaled_gate_test
