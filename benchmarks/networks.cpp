// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/networks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>

#include "core/seed.h"
#include "cuda_kernels/channel_moments.h"
#include "models/architectures/builder.h"
#include "models/execute.h"

namespace zsq::benchmarks {
namespace {

// BatchNorm that takes its running statistics from what passes through.
class MeasuringBatchNorm : public models::CustomOp {
 public:
  MeasuringBatchNorm(std::map<std::string, std::string> params, double eps)
      : params_(std::move(params)), eps_(eps) {}
  std::string kind() const override { return "measuring_batch_norm"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore& parameters) const override {
    const auto parameter = [&](const char* role) { return parameters.at(params_.at(role)); };
    const auto [mean, variance] = cuda_kernels::channel_moments(inputs[0]);
    parameter("mean").copy_(mean);
    parameter("variance").copy_(variance);
    return at::batch_norm(inputs[0], parameter("gamma"), parameter("beta"), mean, variance, false,
                          0, eps_, true);
  }

 private:
  std::map<std::string, std::string> params_;
  double eps_;
};

}  // namespace

void take_statistics_from_noise(models::Model& model, std::uint64_t seed) {
  constexpr std::int64_t kImages = 16;
  const at::NoGradGuard no_grad;
  models::Graph graph = model.graph;
  for (models::Node& node : graph.nodes) {
    const auto* norm = models::get_if<models::BatchNorm>(node);
    if (!norm) continue;
    auto op = std::make_shared<MeasuringBatchNorm>(node.params, norm->eps);
    node.op = models::Custom{std::move(op)};
  }
  const auto [channels, height, width] = graph.input_shape;
  const auto device = model.parameters.device();
  const auto noise =
      at::empty({kImages, channels, height, width})
          .normal_(
              0, 1,
              at::make_generator<at::CPUGeneratorImpl>(stream_seed(seed, "benchmarks.noise", 0)));
  models::execute(graph, model.parameters, noise.to(device));
}

models::Model built_in(const std::string& architecture, std::int64_t image_size,
                       std::uint64_t seed) {
  models::Model model = models::build(architecture, {}, {.seed = seed});
  if (image_size > 0) model.graph.input_shape = {3, image_size, image_size};
  take_statistics_from_noise(model, seed);
  return model;
}

models::Model residual_network(std::int64_t width, std::int64_t units, std::int64_t image_size,
                               std::uint64_t seed) {
  constexpr std::int64_t kClasses = 10;
  const formats::NamedArrays random;
  models::Builder net(random, {.seed = seed}, image_size);
  const auto conv_bn = [&](models::NodeId x, const std::string& name,
                           const models::ConvSpec& spec) {
    return net.batch_norm(net.conv(x, name, spec), name + ".bn");
  };
  const auto relu = [&](models::NodeId x) { return net.activate(x, models::Activation::relu); };
  auto x = relu(conv_bn(net.input(), "stem", {width, 3}));
  for (int stage = 0; stage < 3; ++stage) {
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const auto name = "stage" + std::to_string(stage) + ".unit" + std::to_string(unit);
      const auto out = width << stage;
      const std::int64_t stride = stage > 0 && unit == 0 ? 2 : 1;
      auto y = relu(conv_bn(x, name + ".conv1", {out, 3, stride}));
      y = conv_bn(y, name + ".conv2", {out, 3});
      if (net.channels(x) != out) x = conv_bn(x, name + ".shortcut", {out, 1, stride});
      x = relu(net.add(name + ".add", models::Add{}, {y, x}));
    }
  }
  x = net.add("pool", models::GlobalAvgPool{}, {x});
  auto model =
      net.finish("resnet" + std::to_string(6 * units + 2) + " of width " + std::to_string(width),
                 net.classifier(x, "fc", kClasses));
  take_statistics_from_noise(model, seed);
  return model;
}

}  // namespace zsq::benchmarks
