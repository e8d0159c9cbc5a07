// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

// Weights that lie on their grid already: the rewrite alone changes no bit.
TEST(InsertQuantizers, SameFunctionBeforeCalibration) {
  for (const Mode mode : {Mode::paper, Mode::deploy}) {
    auto teacher = test::residual_network();
    QuantOptions options;
    options.mode = mode;
    options.weights.num_bits = 8;
    const auto student = test::quantized(teacher, options);
    for (const auto& site : weight_sites(student)) {
      auto& weight = teacher.parameters.at(site.parameter);
      weight = site.op->forward({weight}, student.parameters);
    }
    const auto x = test::normal({2, 3, 12, 12}, 5);
    EXPECT_TRUE(at::equal(models::execute(teacher.graph, teacher.parameters, x),
                          models::execute(student.graph, student.parameters, x)));
  }
}

TEST(InsertQuantizers, LeavesTheTeacherAlone) {
  const auto teacher = test::residual_network();
  auto student = test::quantized(teacher, {});
  student.parameters.at("a.weight").zero_();
  EXPECT_GT(teacher.parameters.at("a.weight").abs().max().item<float>(), 0);
}

TEST(InsertQuantizers, RefusesWhatIsQuantizedAlready) {
  const auto student = test::quantized(test::residual_network(), {});
  models::Model again;
  again.graph = student.graph;
  again.parameters = student.parameters.clone();
  try {
    test::quantized(again, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    EXPECT_NE(std::string(error.what()).find("input.quantizer"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace zsq::quant
