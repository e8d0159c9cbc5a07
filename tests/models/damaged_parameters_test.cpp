// SPDX-License-Identifier: Apache-2.0
#include "models/damaged_parameters.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/load.h"
#include "tests/support/error_message.h"
#include "tests/support/shared.h"

namespace zsq::models {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Model sound() {
  Model model;
  Graph& graph = model.graph;
  graph.input_shape = {3, 4, 4};
  graph.input = graph.add({"x", Input{}, {}});
  for (const auto& [name, shape] : std::map<std::string, std::vector<std::int64_t>>{
           {"w", {5, 3, 1, 1}}, {"v", {5}}, {"g", {5}}})
    model.parameters.set(name, at::ones(shape));
  for (const char* name : {"b", "m", "bound"}) model.parameters.set(name, at::zeros({5}));
  graph.add({"conv1", Conv2d{}, {0}, {{"weight", "w"}}});
  graph.add(
      {"bn1", BatchNorm{}, {1}, {{"gamma", "g"}, {"beta", "b"}, {"mean", "m"}, {"variance", "v"}}});
  graph.output = graph.add({"clip", Clip{}, {2}, {{"upper", "bound"}}});
  return model;
}

std::string refusal(const std::string& parameter, std::int64_t place, float value) {
  Model model = sound();
  model.parameters.at(parameter).view({-1})[place] = value;
  return test::error_message(ErrorCode::bad_input, [&] { refuse_damaged_parameters(model); });
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(DamagedParameters, AVarianceIsNamedWithItsLayer) {
  EXPECT_HAS(refusal("v", 2, kNan),
             "BatchNorm 'bn1' (BatchNorm) has a variance that is NaN in 1 of 5");
  EXPECT_HAS(refusal("v", 2, kInfinity), "variance that is infinite in 1 of 5");
  EXPECT_HAS(refusal("v", 4, -1e-3F), "variance that is negative in 1 of 5");
}

TEST(DamagedParameters, SoIsAWeight) {
  EXPECT_HAS(refusal("w", 7, kNan), "layer 'conv1' (Conv2d) has a weight that is NaN in 1 of 15");
  EXPECT_HAS(refusal("w", 0, -kInfinity), "infinite");
  EXPECT_HAS(refusal("bound", 0, kNan), "'clip'");
}

TEST(DamagedParameters, OthersAreCounted) {
  Model model = sound();
  for (const char* name : {"w", "v", "m"}) model.parameters.at(name).fill_(kNan);
  EXPECT_HAS(test::error_message(ErrorCode::bad_input, [&] { refuse_damaged_parameters(model); }),
             "2 more parameters");
}

TEST(DamagedParameters, ASoundNetworkPassesAndSoDoesAnOpenBound) {
  Model model = sound();
  model.parameters.at("bound").fill_(kInfinity);
  model.parameters.at("v").zero_();    // dead channels
  model.parameters.at("g").fill_(-3);  // as some trained networks have
  EXPECT_NO_THROW(refuse_damaged_parameters(model));
  model.parameters.at("w").fill_(3e38F);  // the sum of which is beyond a float
  EXPECT_NO_THROW(refuse_damaged_parameters(model));
}

TEST(DamagedParameters, AFileWithThemIsRefusedByName) {
  const auto path = test::shared_path("cases/reports/bn_var_nan.onnx");
  ZSQ_SKIP_WITHOUT(path);
  const std::string message = test::error_message(ErrorCode::bad_input, [&] { load(path); });
  EXPECT_HAS(message, "bn_var_nan.onnx");
  EXPECT_HAS(message, "variance that is NaN");
}

}  // namespace
}  // namespace zsq::models
