// SPDX-License-Identifier: Apache-2.0
// Built-in architectures: the published parameter and operation counts, the names of each
// publisher, and the same outputs as the exported form of the same network.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/networks.h"
#include "tests/support/temp_folder.h"

namespace zsq::models::architectures_test {
namespace {

using test::network_path;

at::Tensor run(const Model& model, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return execute(model.graph, model.parameters, x);
}

at::Tensor image_for(const Model& model, std::int64_t batch) {
  const auto& [c, h, w] = model.graph.input_shape;
  const auto count = batch * c * h * w;
  return at::linspace(0, 0.37 * static_cast<double>(count), count)
      .sin()
      .mul(2)
      .reshape({batch, c, h, w});
}

formats::NamedArrays state_of(const Model& model) {
  formats::NamedArrays state;
  for (const auto& name : model.parameters.names()) {
    state.emplace_back(name, to_array(model.parameters.at(name)));
  }
  return state;
}

std::string refusal(const std::string& architecture, const formats::NamedArrays& state) {
  try {
    build(architecture, state);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

struct Published {
  const char* name;
  std::int64_t parameters, multiply_accumulates, batch_norms, image;
};
std::ostream& operator<<(std::ostream& stream, const Published& p) { return stream << p.name; }

class Architecture : public testing::TestWithParam<Published> {};

TEST_P(Architecture, HasThePublishedSize) {
  const auto& published = GetParam();
  const auto model = build(published.name, {});
  std::int64_t parameters = 0;
  for (const auto& name : model.parameters.names()) {
    const bool statistic = name.find(".running_") != std::string::npos;
    parameters += statistic ? 0 : model.parameters.at(name).numel();
  }
  EXPECT_EQ(parameters, published.parameters);
  const auto macs = multiply_accumulates(model);
  EXPECT_EQ(std::accumulate(macs.begin(), macs.end(), std::int64_t{0}),
            published.multiply_accumulates);
  EXPECT_EQ(inspect_batch_norm(model).layers, published.batch_norms);
  EXPECT_EQ(model.graph.input_shape,
            (std::array<std::int64_t, 3>{3, published.image, published.image}));
  EXPECT_EQ(model.architecture, published.name);
  const auto logits = run(model, image_for(model, 1));
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{1, model.classes}));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, Architecture,
                         testing::Values(Published{"resnet18", 11689512, 1814073344, 20, 224},
                                         Published{"resnet50", 25557032, 4089184256, 53, 224},
                                         Published{"mobilenet_v2", 3504872, 300774272, 52, 224},
                                         Published{"efficientnet_lite0", 4652008, 385187552, 49,
                                                   224},
                                         Published{"resnet20_cifar10", 269722, 40551040, 19, 32},
                                         Published{"resnet20_cifar100", 275572, 40556800, 19, 32}),
                         [](const auto& info) { return std::string(info.param.name); });

// One of each further family, with torchvision's count of operations, rounded as published.
struct Counted {
  const char* name;
  double billions;
};

TEST(Architectures, ComputeLogitsWithThePublishedNumberOfOperations) {
  for (const auto& [name, billions] :
       {Counted{"resnet34", 3.664}, Counted{"mobilenet_v3_small", 0.057},
        Counted{"efficientnet_b0", 0.386}, Counted{"regnet_x_400mf", 0.414},
        Counted{"regnet_y_400mf", 0.402}, Counted{"shufflenet_v2_x0_5", 0.04},
        Counted{"densenet121", 2.834}, Counted{"vgg11_bn", 7.609}}) {
    SCOPED_TRACE(name);
    const auto model = build(name, {}, {.seed = 4});
    const auto macs = multiply_accumulates(model);
    const auto sum = std::accumulate(macs.begin(), macs.end(), std::int64_t{0});
    EXPECT_NEAR(static_cast<double>(sum) * 1e-9, billions, 0.001);
    const auto logits = run(model, image_for(model, 1));
    EXPECT_EQ(logits.sizes(), (at::IntArrayRef{1, 1000}));
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
  }
}

TEST(Build, TakesAnotherImageSize) {
  const auto model = build("resnet18", {}, {.image_size = {64, 64}});
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{3, 64, 64}));
  EXPECT_EQ(run(model, image_for(model, 1)).sizes(), (at::IntArrayRef{1, 1000}));
}

TEST(Build, DrawsHeNormalWeightsFromTheSeed) {
  const auto one = build("resnet18", {}, {.seed = 1}), again = build("resnet18", {}, {.seed = 1});
  const auto other = build("resnet18", {}, {.seed = 2});
  const auto& weight = one.parameters.at("layer3.1.conv2.weight");
  EXPECT_TRUE(weight.equal(again.parameters.at("layer3.1.conv2.weight")));
  EXPECT_FALSE(weight.equal(other.parameters.at("layer3.1.conv2.weight")));
  EXPECT_FALSE(weight.equal(one.parameters.at("layer3.1.conv1.weight")));
  EXPECT_NEAR(weight.std().item<double>(), std::sqrt(2.0 / (256 * 9)), 2e-4);
  EXPECT_TRUE(one.parameters.at("bn1.running_var").eq(1).all().item<bool>());
  EXPECT_TRUE(one.parameters.at("bn1.running_mean").eq(0).all().item<bool>());
}

TEST(Build, ListsWhatIsMissingUnexpectedAndMisshapen) {
  auto state = state_of(build("resnet20_cifar10", {}));
  EXPECT_EQ(refusal("resnet20_cifar10", state), "accepted");
  state[0].first = "stem.weight";
  state[5].second = to_array(at::zeros({3, 1}));
  const auto text = refusal("resnet20_cifar10", state);
  EXPECT_NE(text.find("missing: conv1.weight"), std::string::npos);
  EXPECT_NE(text.find("unexpected: stem.weight"), std::string::npos);
  EXPECT_NE(text.find(state[5].first + " [3, 1]"), std::string::npos);
  EXPECT_NE(refusal("resnet81", {}).find("resnet18"), std::string::npos);
}

TEST(Build, TakesTheNumberOfClassesFromTheClassifier) {
  auto state = state_of(build("resnet18", {}));
  state[state.size() - 2].second = to_array(at::zeros({7, 512}));
  state[state.size() - 1].second = to_array(at::zeros({7}));
  EXPECT_EQ(build("resnet18", state).classes, 7);
}

// The same weights under pytorchcv's names: its ResNet-18 is torchvision's.
TEST(Build, ReadsPytorchcvNames) {
  const auto torchvision = build("resnet18", {}, {.seed = 3});
  formats::NamedArrays state;
  for (const auto& [name, array] : state_of(torchvision)) {
    const auto last = name.substr(name.rfind('.'));
    const auto module = name.substr(0, name.rfind('.'));
    std::string renamed;
    if (name.rfind("fc", 0) == 0) {
      renamed = "output";
    } else if (name.rfind("layer", 0) != 0) {
      renamed = "features.init_block.conv." + std::string(module == "conv1" ? "conv" : "bn");
    } else {
      // layer<s>.<u>.conv<i>, .bn<i>, .downsample.<0 or 1>
      const auto rest = module.substr(9);
      const auto unit = "features.stage" + module.substr(5, 1) + ".unit" +
                        std::to_string(std::stoi(module.substr(7, 1)) + 1);
      const bool norm = rest[0] == 'b' || rest == "downsample.1";
      const auto block =
          rest[0] == 'd' ? ".identity_conv" : ".body.conv" + rest.substr(rest.size() - 1);
      renamed = unit + block + (norm ? ".bn" : ".conv");
    }
    state.emplace_back(renamed + last, array);
  }
  const auto pytorchcv = build("resnet18", state);
  const auto x = image_for(torchvision, 1);
  EXPECT_TRUE(run(pytorchcv, x).equal(run(torchvision, x)));
}

// PyTorch's state dict of a network, in each container, against the answers of its exported form.
struct Saved {
  const char *file, *architecture;
};

class SavedStateDict : public testing::TestWithParam<Saved> {};

TEST_P(SavedStateDict, IsTheSameNetworkInEveryContainer) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const std::string file = GetParam().file;
  const auto truth = formats::read_npz(network_path(file + ".npz"));
  const auto tensor = [&](const char* name) { return to_tensor(*formats::find(truth, name)); };
  const auto batch_norms = tensor("batch_norms");
  const auto* counts = batch_norms.const_data_ptr<std::int64_t>();
  LoadOptions options;
  options.arch = GetParam().architecture;
  for (const auto* suffix : {".pth", ".legacy.pth", ".safetensors"}) {
    const auto model = load(network_path(file + suffix), options);
    const auto wrong = run(model, tensor("input")) - tensor("output");
    EXPECT_LT(wrong.abs().max().item<double>(), tensor("tolerance").item<double>()) << suffix;
    const auto verdict = inspect_batch_norm(model);
    EXPECT_EQ(verdict.layers, counts[0]) << suffix;
    EXPECT_EQ(verdict.channels, counts[1]) << suffix;
    EXPECT_EQ(verdict.negative_gammas, counts[2]) << suffix;
    EXPECT_EQ(model.format, std::string(suffix) == ".safetensors" ? "safetensors" : "pth");
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, SavedStateDict,
                         testing::Values(Saved{"resnet20_random", "resnet20_cifar10"},
                                         Saved{"resnet20_padded", "resnet20_cifar10"},
                                         Saved{"efficientnet_lite0", "efficientnet_lite0"}),
                         [](const auto& info) { return std::string(info.param.file); });

TEST(StateDicts, TheMetadataMayNameTheArchitecture) {
  const test::TempFolder folder;
  const auto path = folder / "weights.safetensors";
  const auto model = build("resnet20_cifar10", {}, {.seed = 5});
  formats::write_safetensors(path, {state_of(model), {{"arch", "resnet20_cifar10"}}});
  EXPECT_EQ(load(path).architecture, "resnet20_cifar10");
  formats::write_safetensors(path, {state_of(model), {{"arch", "my network"}}});
  try {
    load(path);
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'my network'"), std::string::npos);
    EXPECT_NE(message.find("torch.jit.trace"), std::string::npos);
    EXPECT_EQ(message.find("densenet121"), std::string::npos);  // no list of all names
  }
}

// Counted with NumPy. Paddings that are the same on two sides become those of the convolution.
TEST(StateDicts, EfficientNetIsWhatWasPublished) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  LoadOptions options;
  options.arch = "efficientnet_lite0";
  for (const auto& model : {load(network_path("efficientnet_lite0.pth"), options),
                            load(network_path("efficientnet_lite0.onnx"))}) {
    const auto verdict = inspect_batch_norm(model);
    EXPECT_EQ(verdict.layers, 49);
    EXPECT_EQ(verdict.channels, 21008);
    EXPECT_EQ(verdict.dead_channels, 130);
    EXPECT_EQ(verdict.negative_gammas, 9);
    for (const auto& node : model.graph.nodes) EXPECT_FALSE(is<Pad>(node)) << node.name;
  }
}

}  // namespace
}  // namespace zsq::models::architectures_test
