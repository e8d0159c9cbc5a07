// SPDX-License-Identifier: Apache-2.0
// Folders of configuration and weights as timm and transformers write them.
#include "models/hugging_face.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "models/execute.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"

namespace zsq::models::hugging_face_test {
namespace {

formats::NamedArrays state_of(const Model& model) {
  formats::NamedArrays state;
  for (const auto& name : model.parameters.names())
    state.emplace_back(name, to_array(model.parameters.at(name)));
  return state;
}

Model network(const std::string& name, const std::string& implementation) {
  return build(name, {}, {.seed = 3, .image_size = {64, 64}, .implementation = implementation});
}

at::Tensor logits(const Model& model) {
  const at::NoGradGuard no_grad;
  return execute(model.graph, model.parameters, test::normal({1, 3, 64, 64}, 5));
}

constexpr const char* kTimm =
    R"({"architecture": "regnety_004.tv2_in1k", "num_classes": 1000, "num_features": 440,
        "pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": 0.965,
                           "interpolation": "bicubic", "mean": [0.5, 0.5, 0.5],
                           "std": [0.5, 0.5, 0.5]}})";
constexpr const char* kResNet =
    R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet",
        "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic",
        "downsample_in_first_stage": false, "id2label": {"0": "cat", "1": "dog"}})";

struct HuggingFace : testing::Test {
  void config(const std::string& text) const { folder_.file("config.json", text); }
  void weights(const formats::NamedArrays& tensors,
               const std::string& name = "model.safetensors") const {
    formats::write_safetensors(folder_ / name, {tensors, {}});
  }
  std::string refusal(ErrorCode code) const {
    return test::error_message(code, [&] { load(folder_.path(), {.image_size = {64, 64}}); });
  }
  test::TempFolder folder_;
};

TEST_F(HuggingFace, FolderOfTimmIsTheNetworkThatItNames) {
  const Model truth = network("regnet_y_400mf", "timm");
  config(kTimm);
  weights(state_of(truth));
  const Model model = load(folder_.path());
  EXPECT_EQ(model.architecture, "regnet_y_400mf");
  EXPECT_EQ(model.format, "hugging_face");
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{3, 64, 64}));
  EXPECT_TRUE(logits(model).equal(logits(truth)));
  EXPECT_EQ(formats::preprocessing_file(folder_.path()), folder_ / "config.json");
}

TEST_F(HuggingFace, ShardsAndTransformersPrefixAreRead) {
  const Model truth = network("regnet_y_400mf", "timm");
  formats::NamedArrays first, second;
  std::string map;
  for (auto& [name, array] : state_of(truth)) {
    const bool early = first.size() < 100;
    const std::string key = "timm_model." + name;
    map += (map.empty() ? "" : ", ") + ("\"" + key + "\": \"" + (early ? "a" : "b")) +
           ".safetensors\"";
    (early ? first : second).emplace_back(key, std::move(array));
  }
  config(
      R"({"architectures": ["TimmWrapperForImageClassification"], "model_type": "timm_wrapper",)" +
      std::string(kTimm).substr(1));
  weights(first, "a.safetensors");
  weights(second, "b.safetensors");
  folder_.file("model.safetensors.index.json", R"({"weight_map": {)" + map + "}}");
  EXPECT_TRUE(logits(load(folder_.path())).equal(logits(truth)));
  folder_.file("model.safetensors.index.json", R"({"weight_map": {"x": "../b.safetensors"}})");
  EXPECT_NE(refusal(ErrorCode::bad_input).find("weight_map"), std::string::npos);
}

// torchvision's names of a ResNet, as transformers changes them.
TEST_F(HuggingFace, ResNetOfTransformersIsTorchvisions) {
  const Model truth = network("resnet18", "torchvision");
  const auto renamed = [](const std::string& name) -> std::string {
    const auto last = name.substr(name.rfind('.'));
    if (name.starts_with("fc")) return "classifier.1" + last;
    const bool norm =
        name.find("bn") != std::string::npos || name.find("downsample.1") != std::string::npos;
    const std::string kind = norm ? ".normalization" : ".convolution";
    if (!name.starts_with("layer")) return "resnet.embedder.embedder" + kind + last;
    const auto unit =
        "resnet.encoder.stages." + std::to_string(name[5] - '1') + ".layers." + name[7];
    const auto rest = name.substr(9);  // conv1, bn2, downsample.0
    return unit +
           (rest[0] == 'd' ? ".shortcut" : ".layer." + std::to_string(rest[norm ? 2 : 4] - '1')) +
           kind + last;
  };
  formats::NamedArrays state;
  for (auto& [name, array] : state_of(truth)) {
    if (name.starts_with("fc")) {
      array.shape[0] = 2;
      array.data.resize(array.data.size() / 500);
    }
    state.emplace_back(renamed(name), array);
  }
  config(kResNet);
  weights(state);
  const Model model = load(folder_.path(), {.image_size = {64, 64}});
  EXPECT_EQ(model.architecture, "resnet18");
  EXPECT_EQ(model.classes, 2);
  EXPECT_TRUE(at::allclose(logits(model), logits(truth).slice(1, 0, 2), 1e-5, 1e-5));
}

TEST_F(HuggingFace, WhatIsNotBuiltInIsRefusedByName) {
  weights({});
  config(R"({"architectures": ["ConvNextForImageClassification"], "model_type": "convnext"})");
  EXPECT_NE(refusal(ErrorCode::unsupported_model).find("'ConvNextForImageClassification'"),
            std::string::npos);
  config(R"({"architecture": "regnety_4"})");
  EXPECT_NE(refusal(ErrorCode::unsupported_model).find("'regnety_4'"), std::string::npos);
  config(R"({"model_type": "resnet", "depths": [1, 1, 1, 1]})");
  EXPECT_NE(refusal(ErrorCode::unsupported_model).find("other depths"), std::string::npos);
}

TEST_F(HuggingFace, DamageIsNamed) {
  config(kTimm);
  EXPECT_NE(refusal(ErrorCode::bad_input).find("none of model.safetensors"), std::string::npos);
  weights(state_of(network("regnet_y_400mf", "timm")));
  config(R"({"architecture": "regnety_004", "num_classes": 10})");
  EXPECT_NE(refusal(ErrorCode::bad_input).find("10 classes, the weights have 1000"),
            std::string::npos);
  config(R"({"architecture": 7})");
  EXPECT_NE(refusal(ErrorCode::bad_input).find("'architecture'"), std::string::npos);
  // Casts of numbers beyond the range of the integer would be undefined.
  config(R"({"architecture": "regnety_004", "num_classes": 1e40})");
  EXPECT_NE(refusal(ErrorCode::bad_input).find("'num_classes'"), std::string::npos);
  config("[]");
  EXPECT_NE(refusal(ErrorCode::bad_input).find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace zsq::models::hugging_face_test
