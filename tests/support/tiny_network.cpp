// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

#include "core/seed.h"
#include "formats/npy.h"
#include "formats/onnx.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/network_builder.h"

namespace zsq::test {
namespace {

using models::NodeId;

class ShapeNetwork : public NetworkBuilder {
 public:
  explicit ShapeNetwork(std::uint64_t seed)
      : NetworkBuilder({3, kShapeSize, kShapeSize},
                       initial_parameters(stream_seed(seed, "weights", 0))) {}

  // Convolution without bias, and BatchNorm.
  NodeId conv_bn(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                 std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
    const std::int64_t pad = kernel / 2;
    x = conv(name, x, {out, in / groups, kernel, kernel},
             models::Conv2d{{stride, stride}, {pad, pad, pad, pad}, {1, 1}, groups});
    return batch_norm(name + ".bn", x, out);
  }
  NodeId conv_bn_relu(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                      std::int64_t stride) {
    return relu(name + ".relu", conv_bn(name, x, in, out, 3, stride));
  }

  // Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes.
  NodeId block(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
               std::int64_t stride) {
    const NodeId shortcut = in == out ? x : conv_bn(name + ".shortcut", x, in, out, 1, stride);
    const NodeId y = conv_bn_relu(name + ".conv1", x, in, out, stride);
    const NodeId sum =
        op(name + ".add", models::Add{}, {conv_bn(name + ".conv2", y, out, out, 3, 1), shortcut});
    return relu(name + ".relu", sum);
  }

  // Expansion, depthwise convolution, gate and projection, beside a shortcut where the shape stays.
  NodeId inverted_residual(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
                           std::int64_t stride) {
    const std::int64_t wide = 3 * in;
    NodeId y = hard_swish(conv_bn(name + ".expand", x, in, wide, 1, 1));
    y = hard_swish(conv_bn(name + ".depthwise", y, wide, wide, 3, stride, wide));
    NodeId gate = op(name + ".squeeze", models::GlobalAvgPool{}, {y});
    gate = conv(name + ".reduce", gate, {in, wide, 1, 1}, {}, /*bias=*/true);
    gate = relu(name + ".reduce.relu", gate);
    gate = op(name + ".gate", models::HardSigmoid{},
              {conv(name + ".excite", gate, {wide, in, 1, 1}, {}, /*bias=*/true)});
    y = op(name + ".scale", models::Mul{}, {y, gate});
    y = conv_bn(name + ".project", y, wide, out, 1, 1);
    return in == out && stride == 1 ? op(name + ".add", models::Add{}, {y, x}) : y;
  }
  NodeId hard_swish(NodeId x) {
    return op(model().graph[x].name + ".hardswish", models::HardSwish{}, {x});
  }

  models::Model classify(NodeId x, std::int64_t width) {
    x = op("pool", models::GlobalAvgPool{}, {x});
    x = op("flatten", models::Flatten{}, {x});
    x = linear("fc", x, width, kShapeClasses);
    return finish(x, kShapeClasses);
  }
};

models::Model untrained(std::uint64_t seed) {
  ShapeNetwork net(seed);
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 16, 2);
  x = net.block("block1", x, 16, 24, 2);
  x = net.block("block2", x, 24, 24, 1);
  return net.classify(x, 24);
}

models::Model untrained_mobile(std::uint64_t seed) {
  ShapeNetwork net(seed);
  NodeId x = net.hard_swish(net.conv_bn("stem", net.input(), 3, 16, 3, 2));
  x = net.inverted_residual("block1", x, 16, 24, 2);
  x = net.inverted_residual("block2", x, 24, 24, 1);
  x = net.hard_swish(net.conv_bn("head", x, 24, 64, 1, 1));
  return net.classify(x, 64);
}

// The interpreter of models/ runs BatchNorm as at inference; here it takes batch moments and
// updates the running ones.
at::Tensor forward_in_training(const models::Model& model, const at::Tensor& images) {
  std::vector<at::Tensor> values;
  for (const models::Node& node : model.graph.nodes) {
    const auto parameter = [&](const char* role) {
      const auto found = node.params.find(role);
      return found == node.params.end() ? at::Tensor() : model.parameters.at(found->second);
    };
    const at::Tensor x =
        node.inputs.empty() ? images : values[static_cast<std::size_t>(node.inputs[0])];
    if (models::is<models::Input>(node)) {
      values.push_back(x);
    } else if (const auto* conv = models::get_if<models::Conv2d>(node)) {
      values.push_back(at::conv2d(x, parameter("weight"), parameter("bias"), conv->stride,
                                  at::IntArrayRef({conv->pads[0], conv->pads[1]}), {1, 1},
                                  conv->groups));
    } else if (const auto* bn = models::get_if<models::BatchNorm>(node)) {
      values.push_back(at::batch_norm(x, parameter("gamma"), parameter("beta"), parameter("mean"),
                                      parameter("variance"), /*training=*/true, /*momentum=*/0.1,
                                      bn->eps, /*cudnn_enabled=*/false));
    } else if (models::is<models::Clip>(node)) {
      values.push_back(at::relu(x));
    } else if (models::is<models::Add>(node)) {
      values.push_back(at::add(x, values[static_cast<std::size_t>(node.inputs[1])]));
    } else if (models::is<models::HardSwish>(node)) {
      values.push_back(at::hardswish(x));
    } else if (models::is<models::HardSigmoid>(node)) {
      values.push_back(at::hardsigmoid(x));
    } else if (models::is<models::Mul>(node)) {
      values.push_back(at::mul(x, values[static_cast<std::size_t>(node.inputs[1])]));
    } else if (models::is<models::GlobalAvgPool>(node)) {
      values.push_back(at::adaptive_avg_pool2d(x, {1, 1}));
    } else if (models::is<models::Flatten>(node)) {
      values.push_back(x.flatten(1));
    } else if (models::is<models::Linear>(node)) {
      values.push_back(at::linear(x, parameter("weight"), parameter("bias")));
    } else {
      throw std::logic_error("tiny network: cannot train " + models::op_name(node.op));
    }
  }
  return values[static_cast<std::size_t>(model.graph.output)];
}

void train(models::Model& model, std::uint64_t seed) {
  constexpr int kSteps = 300, kBatch = 64;
  constexpr double kLearningRate = 0.2, kMomentum = 0.9, kWeightDecay = 5e-4;
  std::vector<std::pair<at::Tensor, at::Tensor>> weights;  // and velocities
  for (const std::string& name : model.parameters.names()) {
    if (name.ends_with(".mean") || name.ends_with(".variance")) continue;
    at::Tensor& weight = model.parameters.at(name);
    weights.emplace_back(weight.requires_grad_(true), at::zeros_like(weight));
  }
  for (int step = 0; step < kSteps; ++step) {
    const ShapeImages batch = draw_shapes(kBatch, stream_seed(seed, "training images", step));
    at::cross_entropy_loss(forward_in_training(model, batch.images), batch.labels).backward();
    const at::NoGradGuard no_grad;
    const double lr = kLearningRate * 0.5 * (1 + std::cos(std::numbers::pi * step / kSteps));
    for (auto& [weight, velocity] : weights) {
      velocity.mul_(kMomentum).add_(weight.grad()).add_(weight, kWeightDecay);
      weight.sub_(velocity, lr);
      weight.mutable_grad().reset();
    }
  }
  for (auto& [weight, velocity] : weights) weight.requires_grad_(false);
}

}  // namespace

TinyNetwork train_tiny_network(std::uint64_t seed) {
  models::Model model = untrained(seed);
  train(model, seed);
  return {std::move(model), draw_shapes(1000, stream_seed(seed, "test images", 0))};
}

TinyNetwork train_tiny_mobile_network(std::uint64_t seed) {
  models::Model model = untrained_mobile(seed);
  train(model, seed);
  return {std::move(model), draw_shapes(1000, stream_seed(seed, "test images", 0))};
}

double accuracy(const models::Model& model, const ShapeImages& data) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = models::execute(model.graph, model.parameters, data.images);
  return 100 * logits.argmax(1).eq(data.labels).to(at::kDouble).mean().item<double>();
}

void save_onnx(const models::Model& model, const std::filesystem::path& path) {
  using formats::onnx::Node;
  formats::onnx::Model file;
  file.producer_name = "zsq tests";
  file.graph.name = "shapes";
  const auto& [channels, height, width] = model.graph.input_shape;
  file.graph.inputs = {{"input", 1, {{-1, "N"}, {channels, ""}, {height, ""}, {width, ""}}}};
  file.graph.outputs = {{"logits", 1, {{-1, "N"}, {kShapeClasses, ""}}}};
  for (const std::string& name : model.parameters.names()) {
    file.graph.initializers.emplace_back(name, models::to_array(model.parameters.at(name)));
  }
  for (std::size_t id = 0; id < model.graph.nodes.size(); ++id) {
    const models::Node& node = model.graph.nodes[id];
    if (models::is<models::Input>(node)) continue;
    Node written{node.name, "", "", {}, {}, {}};
    for (const models::NodeId input : node.inputs) {
      written.inputs.push_back(model.graph[input].name);
    }
    const bool last = static_cast<models::NodeId>(id) == model.graph.output;
    written.outputs = {last ? "logits" : node.name};
    const auto parameters = [&](std::initializer_list<const char*> roles) {
      for (const char* role : roles) written.inputs.push_back(node.params.at(role));
    };
    if (const auto* conv = models::get_if<models::Conv2d>(node)) {
      written.op_type = "Conv";
      parameters({"weight"});
      if (node.params.count("bias")) parameters({"bias"});
      written.attributes = {
          {"group", conv->groups},
          {"pads", std::vector<std::int64_t>(conv->pads.begin(), conv->pads.end())},
          {"strides", std::vector<std::int64_t>(conv->stride.begin(), conv->stride.end())}};
    } else if (const auto* bn = models::get_if<models::BatchNorm>(node)) {
      written.op_type = "BatchNormalization";
      parameters({"gamma", "beta", "mean", "variance"});
      written.attributes = {{"epsilon", static_cast<float>(bn->eps)}};
    } else if (models::is<models::Linear>(node)) {
      written.op_type = "Gemm";
      parameters({"weight", "bias"});
      written.attributes = {{"transB", std::int64_t{1}}};
    } else if (const auto* clip = models::get_if<models::Clip>(node); clip && clip->hi == 6) {
      written.op_type = "Clip";
      for (const float bound : {clip->lo, clip->hi}) {
        written.inputs.push_back(node.name + ".bound" + std::to_string(written.inputs.size()));
        file.graph.initializers.emplace_back(written.inputs.back(),
                                             models::to_array(at::scalar_tensor(bound)));
      }
    } else if (models::is<models::Clip>(node)) {
      written.op_type = "Relu";
    } else if (models::is<models::GlobalAvgPool>(node)) {
      written.op_type = "GlobalAveragePool";
    } else if (const auto* gate = models::get_if<models::HardSigmoid>(node)) {
      written.op_type = "HardSigmoid";
      written.attributes = {{"alpha", static_cast<float>(gate->alpha)},
                            {"beta", static_cast<float>(gate->beta)}};
    } else {
      written.op_type = models::op_name(node.op);  // Add, Mul, HardSwish, Flatten
    }
    file.graph.nodes.push_back(std::move(written));
  }
  formats::onnx::write(path, file);
}

void save_npz(const ShapeImages& data, const std::filesystem::path& path) {
  formats::write_npz(
      path, {{"images", models::to_array(data.images)}, {"labels", models::to_array(data.labels)}});
}

}  // namespace zsq::test
