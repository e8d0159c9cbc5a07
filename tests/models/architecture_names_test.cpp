// SPDX-License-Identifier: Apache-2.0
// Each built-in architecture under the names of torchvision 0.26.0 and timm 1.0.31: their number of
// parameters and a hash of their state dict's names, taken from these packages.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "models/load.h"

namespace zsq::models {
namespace {

struct StateDict {
  const char *name, *implementation;
  std::int64_t parameters;
  const char* hash;  // of the sorted lines "<name> <elements>", without num_batches_tracked
};

constexpr StateDict kStateDicts[] = {
    {"densenet121", "timm", 7978856, "ed12ec8336a2"},
    {"densenet121", "torchvision", 7978856, "ed12ec8336a2"},
    {"densenet161", "timm", 28681000, "797c1bfb1231"},
    {"densenet161", "torchvision", 28681000, "797c1bfb1231"},
    {"densenet169", "timm", 14149480, "17e9faf0c786"},
    {"densenet169", "torchvision", 14149480, "17e9faf0c786"},
    {"densenet201", "timm", 20013928, "4a5289adbeb5"},
    {"densenet201", "torchvision", 20013928, "4a5289adbeb5"},
    {"efficientnet_b0", "timm", 5288548, "81916e8024f9"},
    {"efficientnet_b0", "torchvision", 5288548, "e054bd3d8076"},
    {"efficientnet_b1", "timm", 7794184, "b3591e201c8d"},
    {"efficientnet_b1", "torchvision", 7794184, "f6f1ab8b29d6"},
    {"efficientnet_b2", "timm", 9109994, "c0bacf2064dc"},
    {"efficientnet_b2", "torchvision", 9109994, "74b863e49c68"},
    {"efficientnet_b3", "timm", 12233232, "e0b143343c58"},
    {"efficientnet_b3", "torchvision", 12233232, "045619990817"},
    {"efficientnet_b4", "timm", 19341616, "52b18b7182d4"},
    {"efficientnet_b4", "torchvision", 19341616, "98048bc9fae1"},
    {"efficientnet_lite0", "timm", 4652008, "341637773924"},
    {"efficientnet_lite1", "timm", 5416680, "fe1254115339"},
    {"efficientnet_lite2", "timm", 6092072, "b0cccc5b6050"},
    {"efficientnet_lite3", "timm", 8197096, "f1f14b206938"},
    {"efficientnet_lite4", "timm", 13006568, "d207c36139db"},
    {"mobilenet_v2", "torchvision", 3504872, "346ba49e6c67"},
    {"mobilenet_v3_large", "torchvision", 5483032, "53bfcfd034a8"},
    {"mobilenet_v3_small", "torchvision", 2542856, "2ddfbc854287"},
    {"mobilenetv2_100", "timm", 3504872, "850cb6ad7cec"},
    {"mobilenetv3_large_100", "timm", 5483032, "30dc4fd7a968"},
    {"mobilenetv3_small_100", "timm", 2542856, "7dba37cf1321"},
    {"regnet_x_16gf", "torchvision", 54278536, "a1f7eed4ac82"},
    {"regnet_x_1_6gf", "torchvision", 9190136, "d5146048997f"},
    {"regnet_x_32gf", "torchvision", 107811560, "74df6e4ce3c6"},
    {"regnet_x_3_2gf", "torchvision", 15296552, "6040ce15f26a"},
    {"regnet_x_400mf", "torchvision", 5495976, "b73ceb459ce6"},
    {"regnet_x_800mf", "torchvision", 7259656, "f03c85a2bf73"},
    {"regnet_x_8gf", "torchvision", 39572648, "3a5c0eacc4f4"},
    {"regnet_y_16gf", "torchvision", 83590140, "3347bf46e2a2"},
    {"regnet_y_1_6gf", "torchvision", 11202430, "06738a1bd841"},
    {"regnet_y_32gf", "torchvision", 145046770, "51144aa5b240"},
    {"regnet_y_3_2gf", "torchvision", 19436338, "fba93d6dadc5"},
    {"regnet_y_400mf", "torchvision", 4344144, "7af8b67ba74e"},
    {"regnet_y_800mf", "torchvision", 6432512, "ccd2917aeddf"},
    {"regnet_y_8gf", "torchvision", 39381472, "5e37d6dad0c3"},
    {"regnetx_002", "timm", 2684792, "0d4403f29608"},
    {"regnetx_004", "timm", 5157512, "dd9e9b7e8089"},
    {"regnetx_004_tv", "timm", 5495976, "5477803238d8"},
    {"regnetx_006", "timm", 6196040, "56ad47e40822"},
    {"regnetx_008", "timm", 7259656, "0671a19ae634"},
    {"regnetx_016", "timm", 9190136, "37cd720f3901"},
    {"regnetx_032", "timm", 15296552, "4e9777038d83"},
    {"regnetx_040", "timm", 22118248, "bdd9f27affd2"},
    {"regnetx_064", "timm", 26209256, "195d3d22654e"},
    {"regnetx_080", "timm", 39572648, "67a421d02d6d"},
    {"regnetx_120", "timm", 46106056, "e9f0315078a3"},
    {"regnetx_160", "timm", 54278536, "e5003896009b"},
    {"regnetx_320", "timm", 107811560, "55d56915d64b"},
    {"regnety_002", "timm", 3162996, "0c1e1fb19662"},
    {"regnety_004", "timm", 4344144, "baf5b6a2fb58"},
    {"regnety_006", "timm", 6055160, "d6c87df9adb9"},
    {"regnety_008", "timm", 6263168, "e4aec59a81c2"},
    {"regnety_008_tv", "timm", 6432512, "4a50f44db5e1"},
    {"regnety_016", "timm", 11202430, "a8a373f58225"},
    {"regnety_032", "timm", 19436338, "1b5335f2e8f3"},
    {"regnety_040", "timm", 20646656, "2d86fad0ef3c"},
    {"regnety_064", "timm", 30583252, "cd4eba1d48e9"},
    {"regnety_080", "timm", 39180068, "7cd11c4d9828"},
    {"regnety_080_tv", "timm", 39381472, "5786032d9add"},
    {"regnety_120", "timm", 51822544, "8a41fa0f00a8"},
    {"regnety_160", "timm", 83590140, "4fcb516d03fd"},
    {"regnety_320", "timm", 145046770, "4ba90d08fd83"},
    {"resnet101", "timm", 44549160, "b33052616ef0"},
    {"resnet101", "torchvision", 44549160, "b33052616ef0"},
    {"resnet18", "timm", 11689512, "ae42b6582fe8"},
    {"resnet18", "torchvision", 11689512, "ae42b6582fe8"},
    {"resnet34", "timm", 21797672, "f8c95e360e4c"},
    {"resnet34", "torchvision", 21797672, "f8c95e360e4c"},
    {"resnet50", "timm", 25557032, "14b12b12f6ef"},
    {"resnet50", "torchvision", 25557032, "14b12b12f6ef"},
    {"shufflenet_v2_x0_5", "torchvision", 1366792, "8fd13874f9e4"},
    {"shufflenet_v2_x1_0", "torchvision", 2278604, "cbcc8b0b0446"},
    {"shufflenet_v2_x1_5", "torchvision", 3503624, "e64c221123c1"},
    {"shufflenet_v2_x2_0", "torchvision", 7393996, "1b8af949c0cf"},
    {"tf_efficientnet_b0", "timm", 5288548, "81916e8024f9"},
    {"tf_efficientnet_b1", "timm", 7794184, "b3591e201c8d"},
    {"tf_efficientnet_b2", "timm", 9109994, "c0bacf2064dc"},
    {"tf_efficientnet_b3", "timm", 12233232, "e0b143343c58"},
    {"tf_efficientnet_b4", "timm", 19341616, "52b18b7182d4"},
    {"tf_efficientnet_lite0", "timm", 4652008, "341637773924"},
    {"tf_efficientnet_lite1", "timm", 5416680, "fe1254115339"},
    {"tf_efficientnet_lite2", "timm", 6092072, "b0cccc5b6050"},
    {"tf_efficientnet_lite3", "timm", 8197096, "f1f14b206938"},
    {"tf_efficientnet_lite4", "timm", 13006568, "d207c36139db"},
    {"tf_mobilenetv3_large_100", "timm", 5483032, "30dc4fd7a968"},
    {"tf_mobilenetv3_small_100", "timm", 2542856, "7dba37cf1321"},
    {"vgg11_bn", "timm", 132868840, "fce22421b0ba"},
    {"vgg11_bn", "torchvision", 132868840, "599024cea774"},
    {"vgg13_bn", "timm", 133053736, "143243c4f192"},
    {"vgg13_bn", "torchvision", 133053736, "7c73363606b3"},
    {"vgg16_bn", "timm", 138365992, "62127673303f"},
    {"vgg16_bn", "torchvision", 138365992, "96d0fc0edcce"},
    {"vgg19_bn", "timm", 143678248, "9939e5db453a"},
    {"vgg19_bn", "torchvision", 143678248, "097738533736"},
};

std::string hash_of_names(const ParameterStore& parameters) {
  std::vector<std::string> lines;
  for (const auto& name : parameters.names())
    lines.push_back(name + " " + std::to_string(parameters.at(name).numel()) + "\n");
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line;
  return formats::sha256(std::as_bytes(std::span(text))).substr(0, 12);
}

std::int64_t trained(const ParameterStore& parameters) {
  std::int64_t count = 0;
  for (const auto& name : parameters.names())
    count += name.find(".running_") == std::string::npos ? parameters.at(name).numel() : 0;
  return count;
}

TEST(ArchitectureNames, AreThoseOfEachImplementation) {
  for (const auto& [name, implementation, parameters, hash] : kStateDicts) {
    SCOPED_TRACE(std::string(name) + " of " + implementation);
    const auto model = build(name, {}, {.zero_weights = true, .implementation = implementation});
    EXPECT_EQ(trained(model.parameters), parameters);
    EXPECT_EQ(hash_of_names(model.parameters), hash);
    EXPECT_EQ(model.classes, 1000);
  }
}

TEST(ArchitectureNames, AreAllInTheTable) {
  std::set<std::string> checked{"resnet20_cifar10", "resnet20_cifar100"};
  for (const auto& row : kStateDicts) checked.insert(row.name);
  for (const auto& name : architecture_names()) EXPECT_TRUE(checked.count(name)) << name;
}

TEST(ArchitectureNames, ListStatesThePublishedNumberOfParameters) {
  for (const auto& row : architectures()) {
    const auto known = std::find_if(std::begin(kStateDicts), std::end(kStateDicts),
                                    [&](const auto& one) { return row.name == one.name; });
    if (known != std::end(kStateDicts)) {
      EXPECT_EQ(row.parameters, known->parameters) << row.name;
    }
    EXPECT_NE(row.paper.find("arXiv"), std::string::npos) << row.name;
  }
}

// A checkpoint of one implementation is the network of the other, if both compute the same.
TEST(ArchitectureNames, TagsOfTimmAreIgnored) {
  EXPECT_EQ(build("mobilenetv2_100.ra_in1k", {}, {.zero_weights = true}).architecture,
            "mobilenet_v2");
}

TEST(ArchitectureNames, AMissingTensorIsNamedWithItsShapeAndTheNearestName) {
  formats::NamedArrays state;
  const auto model = build("regnet_y_400mf", {}, {.implementation = "timm"});
  for (const auto& name : model.parameters.names())
    state.emplace_back(name == "s3.b2.se.fc1.weight" ? "s3.b2.se.fc_1.weight" : name,
                       to_array(model.parameters.at(name)));
  try {
    build("regnet_y_400mf", state);
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    for (const char* part : {"as timm names them", "1 missing: s3.b2.se.fc1.weight [52, 208, 1, 1]",
                             "nearest name there is s3.b2.se.fc_1.weight", "1 unexpected"})
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

}  // namespace
}  // namespace zsq::models
