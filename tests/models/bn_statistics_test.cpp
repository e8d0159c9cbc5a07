// SPDX-License-Identifier: Apache-2.0
// A small network whose BatchNorm is folded here, in plain ATen, and brought back.
#include "models/bn_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "losses/losses.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"

namespace zsq::models::bn_statistics_test {
namespace {

constexpr double kEps = 1e-3;  // large, so that a wrong one is seen

Model network() {
  test::NetworkBuilder net;
  auto x = net.conv("a", net.input(), 3, 8);
  x = net.relu("a.relu", net.batch_norm("a.bn", x, 8, kEps));
  auto y = net.conv("b", x, 8, 8, 3, 1, true);
  y = net.batch_norm("b.bn", y, 8, kEps);
  x = net.relu("relu", net.op("add", Add{}, {y, x}));
  x = net.op("flatten", Flatten{}, {net.op("pool", GlobalAvgPool{}, {x})});
  return net.finish(net.linear("fc", x, 8, 10));
}

// What an exporter leaves: convolutions with biases instead of BatchNorm.
Model folded(const Model& model) {
  Model result;
  result.graph.input_shape = model.graph.input_shape;
  result.parameters = model.parameters.clone();
  std::vector<NodeId> ids;
  for (const auto& node : model.graph.nodes) {
    const auto param = [&](const char* role) { return model.parameters.at(node.params.at(role)); };
    if (is<BatchNorm>(node)) {
      Node& conv = result.graph[ids[static_cast<std::size_t>(node.inputs[0])]];
      const auto gain = param("gamma") / (param("variance") + kEps).sqrt();
      auto& weight = result.parameters.at(conv.params.at("weight"));
      weight = weight * gain.view({-1, 1, 1, 1});
      const auto bias = conv.params.count("bias") ? result.parameters.at(conv.params.at("bias"))
                                                  : at::zeros_like(gain);
      conv.params["bias"] = conv.name + ".folded";
      result.parameters.set(conv.params["bias"], param("beta") + (bias - param("mean")) * gain);
      ids.push_back(ids[static_cast<std::size_t>(node.inputs[0])]);
      continue;
    }
    Node copy = node;
    for (auto& input : copy.inputs) input = ids[static_cast<std::size_t>(input)];
    ids.push_back(result.graph.add(std::move(copy)));
  }
  result.graph.output = ids[static_cast<std::size_t>(model.graph.output)];
  return result;
}

// Of the BatchNorm layers, in either form.
formats::NamedArrays statistics(const Model& model, bool trained) {
  formats::NamedArrays arrays;
  for (const std::string layer : {"a", "b"}) {
    const auto param = [&](const char* role) { return model.parameters.at(layer + ".bn." + role); };
    const auto put = [&](const char* role, const at::Tensor& value) {
      arrays.emplace_back(layer + "." + role, to_array(value));
    };
    const auto variance = param("gamma").square() * param("variance") / (param("variance") + kEps);
    put("running_mean", trained ? param("mean") : param("beta"));
    put("running_var", trained ? param("variance") : variance);
    if (!trained) continue;
    put("weight", param("gamma"));
    put("bias", param("beta"));
  }
  return arrays;
}

at::Tensor images() { return test::normal({6, 3, 12, 12}, 7); }

at::Tensor logits(const Model& model) {
  const at::NoGradGuard no_grad;
  return execute(model.graph, model.parameters, images());
}

using Loss = at::Tensor (*)(const std::vector<losses::Moments>&,
                            const std::vector<losses::RunningMoments>&, const std::vector<double>&);

double loss_of(const Model& model, Loss loss) {
  const at::NoGradGuard no_grad;
  Taps taps{batch_norm_inputs(model.graph), {}};
  execute(model.graph, model.parameters, images(), &taps);
  std::vector<losses::RunningMoments> running;
  for (const auto& node : model.graph.nodes)
    if (is<BatchNorm>(node))
      running.push_back({model.parameters.at(node.params.at("mean")),
                         model.parameters.at(node.params.at("variance")),
                         get_if<BatchNorm>(node)->eps});
  return loss(losses::batch_moments(taps.values), running, {}).item<double>();
}

struct BnStatistics : testing::Test {
  std::filesystem::path save(const formats::NamedArrays& arrays) const {
    const auto path = folder_ / "bn.safetensors";
    formats::write_safetensors(path, {arrays, {{"eps", "1e-3"}}});
    return path;
  }
  Model restored(bool trained) const {
    Model model = folded(original_);
    EXPECT_TRUE(batch_norm_inputs(model.graph).empty());
    add_batch_norm_from(save(statistics(original_, trained)), model);
    return model;
  }
  std::string refusal(const formats::NamedArrays& arrays) const {
    Model model = folded(original_);
    return test::error_message(ErrorCode::bad_input,
                               [&] { add_batch_norm_from(save(arrays), model); });
  }

  const Model original_ = network();
  test::TempFolder folder_;
};

TEST_F(BnStatistics, OfEitherFormLeaveTheNetworkWhatItIs) {
  for (const bool trained : {false, true}) {
    const Model model = restored(trained);
    EXPECT_EQ(batch_norm_inputs(model.graph).size(), 2U);
    EXPECT_TRUE(at::allclose(logits(model), logits(original_), 1e-4, 1e-4)) << trained;
  }
}

TEST_F(BnStatistics, AsTrainedGiveTheLossOfTheOriginal) {
  const Model model = restored(true);
  for (const Loss loss : {losses::batch_norm_statistics, losses::batch_norm_deviations,
                          losses::normalised_batch_norm_statistics})
    EXPECT_NEAR(loss_of(model, loss) / loss_of(original_, loss), 1, 1e-4);
}

// In units of a channel's deviation it does not matter by which gain the channel was multiplied.
TEST_F(BnStatistics, OfTheFoldedOutputGiveItsNormalisedLoss) {
  const auto loss = losses::normalised_batch_norm_statistics;
  EXPECT_NEAR(loss_of(restored(false), loss) / loss_of(original_, loss), 1, 1e-2);
}

TEST_F(BnStatistics, AChannelThatWasSwitchedOffStaysOff) {
  Model original = original_;
  original.parameters = original_.parameters.clone();
  original.parameters.at("a.bn.gamma")[3] = 0;
  Model model = folded(original);
  add_batch_norm_from(save(statistics(original, true)), model);
  EXPECT_TRUE(at::allclose(logits(model), logits(original), 1e-4, 1e-4));
}

TEST_F(BnStatistics, AreFoundByTheNamesThatExportersMake) {
  Model model = folded(original_);
  model.graph[model.graph.id_of("a")].name = "/layer1/layer1.0/conv1/Conv";
  auto arrays = statistics(original_, true);
  for (auto& [name, array] : arrays)
    if (name.starts_with("a.")) name = "layer1.0.conv1" + name.substr(1);
  add_batch_norm_from(save(arrays), model);
  EXPECT_TRUE(at::allclose(logits(model), logits(original_), 1e-4, 1e-4));
  EXPECT_TRUE(model.warnings.empty());
}

TEST_F(BnStatistics, LayersThatTheFileLeavesOutAreCounted) {
  Model model = folded(original_);
  auto arrays = statistics(original_, false);
  arrays.resize(2);
  add_batch_norm_from(save(arrays), model);
  EXPECT_EQ(convolutions_without_batch_norm(model.graph), std::vector<std::string>{"b"});
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_NE(model.warnings[0].find("1 convolutions"), std::string::npos);
}

TEST_F(BnStatistics, ThatDoNotFitAreNamed) {
  auto arrays = statistics(original_, false);
  arrays[0].first = "layer.a.running_mean";
  EXPECT_NE(refusal(arrays).find("no convolution 'layer.a'"), std::string::npos);
  arrays = statistics(original_, false);
  arrays.erase(arrays.begin());
  EXPECT_NE(refusal(arrays).find("'a' needs both"), std::string::npos);
  arrays = statistics(original_, true);
  arrays.pop_back();
  EXPECT_NE(refusal(arrays).find("one of weight and bias"), std::string::npos);
  arrays = statistics(original_, false);
  arrays[1].second = to_array(at::ones({5}));
  EXPECT_NE(refusal(arrays).find("has 8 channels, not 5"), std::string::npos);
  arrays[1].second = to_array(at::full({8}, -1.0));
  EXPECT_NE(refusal(arrays).find("negative variance"), std::string::npos);
  arrays[1].first = "a.gamma";
  EXPECT_NE(refusal(arrays).find("'a.gamma' is none of"), std::string::npos);
  Model whole = original_;
  EXPECT_NE(
      test::error_message(ErrorCode::bad_input,
                          [&] { add_batch_norm_from(save(statistics(original_, false)), whole); })
          .find("has a BatchNorm already"),
      std::string::npos);
}

}  // namespace
}  // namespace zsq::models::bn_statistics_test
