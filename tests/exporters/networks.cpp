// SPDX-License-Identifier: Apache-2.0
#include "tests/exporters/networks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <random>

#include "core/seed.h"
#include "quant/calibration/ranges.h"

namespace zsq::test {
namespace {

using models::NodeId;

// Appends layers with random parameters; each call returns the new node.
class Stack {
 public:
  Stack(std::uint64_t seed, std::array<std::int64_t, 3> input_shape) : seed_(seed) {
    model_.graph.input_shape = input_shape;
    model_.graph.input = model_.graph.add({"image", models::Input{}, {}});
  }

  NodeId op(const std::string& name, models::Op op, std::vector<NodeId> inputs) {
    return model_.graph.add({name, std::move(op), std::move(inputs)});
  }
  NodeId relu(const std::string& name, NodeId x) { return op(name, models::Clip{}, {x}); }

  NodeId conv(const std::string& name, NodeId x, std::vector<std::int64_t> shape,
              models::Conv2d conv, bool bias = false) {
    models::Node node{name, conv, {x}, {{"weight", name + ".weight"}}};
    set(name + ".weight", shape, 1.5 / std::sqrt(shape[1] * shape[2] * shape[3]));
    if (bias) {
      node.params["bias"] = name + ".bias";
      set(name + ".bias", {shape[0]}, 0.3);
    }
    return model_.graph.add(std::move(node));
  }

  NodeId linear(const std::string& name, NodeId x, std::int64_t in, std::int64_t out) {
    set(name + ".weight", {out, in}, 0.5);
    set(name + ".bias", {out}, 0.5);
    return model_.graph.add(
        {name, models::Linear{}, {x}, {{"weight", name + ".weight"}, {"bias", name + ".bias"}}});
  }

  // Gammas of both signs; channel 1 has none.
  NodeId batch_norm(const std::string& name, NodeId x, std::int64_t channels) {
    models::Node node{name, models::BatchNorm{1e-3}, {x}, {}};
    for (const char* role : {"gamma", "beta", "mean", "variance"}) {
      node.params[role] = name + "." + role;
      set(name + "." + role, {channels}, 0.5);
    }
    at(name + ".gamma").add_(0.7);
    at(name + ".gamma")[0].mul_(-1);
    at(name + ".gamma")[1].zero_();
    at(name + ".variance").abs_().add_(0.5);
    return model_.graph.add(std::move(node));
  }

  at::Tensor& at(const std::string& name) { return model_.parameters.at(name); }

  models::Model finish(NodeId output, std::int64_t classes) && {
    model_.graph.output = output;
    model_.classes = classes;
    return std::move(model_);
  }

 private:
  void set(const std::string& name, const std::vector<std::int64_t>& shape, double scale) {
    model_.parameters.set(name, random_tensor(shape, stream_seed(seed_, name, 0)) * scale);
  }

  std::uint64_t seed_;
  models::Model model_;
};

}  // namespace

at::Tensor random_tensor(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  at::Tensor result = at::empty(shape, at::kFloat);
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < result.numel(); ++i) result.data_ptr<float>()[i] = normal(engine);
  return result;
}

models::Model residual_network(std::uint64_t seed) {
  Stack net(seed, {3, 16, 16});
  const models::Conv2d same{.pads = {1, 1, 1, 1}};
  NodeId x = net.conv("stem", 0, {8, 3, 3, 3}, same);
  x = net.relu("stem_relu", net.batch_norm("stem_bn", x, 8));

  NodeId y = net.conv("a1", x, {8, 8, 3, 3}, same);
  y = net.relu("a1_relu", net.batch_norm("a1_bn", y, 8));
  y = net.batch_norm("a2_bn", net.conv("a2", y, {8, 8, 3, 3}, same), 8);
  x = net.relu("a_relu", net.op("a_add", models::Add{}, {y, x}));

  const models::Conv2d depthwise{.stride = {2, 2}, .pads = {0, 0, 1, 1}, .groups = 8};
  y = net.batch_norm("b1_bn", net.conv("b1", x, {8, 1, 3, 3}, depthwise), 8);
  y = net.op("b1_relu6", models::Clip{0, 6}, {y});
  y = net.batch_norm("b2_bn", net.conv("b2", y, {16, 8, 1, 1}, {}), 16);
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  NodeId skip = net.op("b_rows", models::Slice{2, 0, end, 2}, {x});
  skip = net.op("b_columns", models::Slice{3, 0, end, 2}, {skip});
  skip = net.op("b_pad", models::Pad{{0, 4, 0, 0}, {0, 4, 0, 0}, 0}, {skip});
  x = net.op("b_add", models::Add{}, {y, skip});
  x = net.relu("b_relu", net.batch_norm("b_bn", x, 16));
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  x = net.linear("fc", x, 16, 5);

  net.at("a1.weight").select(0, 3).zero_();     // no weight at all
  net.at("b1.weight").select(0, 2).mul_(1e-9);  // next to none, and variance 0
  net.at("b1_bn.variance")[2].zero_();
  return std::move(net).finish(x, 5);
}

models::Model operator_zoo(std::uint64_t seed) {
  Stack net(seed, {3, 16, 16});
  const models::Conv2d same{.pads = {1, 1, 1, 1}};
  NodeId x = net.conv("stem", 0, {8, 3, 3, 3}, same, true);
  x = net.op("leaky", models::LeakyRelu{0.1}, {x});
  const NodeId largest = net.op("largest", models::MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x});
  const NodeId mean = net.op("mean", models::AvgPool{{2, 2}, {2, 2}}, {x});
  x = net.op("both", models::Concat{1}, {largest, mean});
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {x});
  gate = net.conv("reduce", gate, {4, 16, 1, 1}, {}, true);
  gate = net.conv("expand", net.op("swish", models::HardSwish{}, {gate}), {16, 4, 1, 1}, {}, true);
  x = net.op("gated", models::Mul{}, {x, net.op("gate", models::HardSigmoid{}, {gate})});
  x = net.op("split", models::Reshape{{2, 8, 8, 8}}, {x});
  x = net.op("swap", models::Transpose{{0, 2, 1, 3, 4}}, {x});
  x = net.op("join", models::Reshape{{16, 8, 8}}, {x});
  x = net.conv("grouped", x, {8, 8, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 2}, true);
  x = net.op("window", models::Clip{0.25F, 2}, {x});
  x = net.op("larger", models::Resize{{2, 2}}, {x});
  x = net.conv("dilated", x, {8, 8, 3, 3}, {.pads = {2, 2, 2, 2}, .dilation = {2, 2}}, true);
  x = net.op("sigmoid", models::Sigmoid{}, {x});
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flat", models::Flatten{}, {x});
  x = net.linear("fc", x, 8, 5);
  return std::move(net).finish(x, 5);
}

models::Model layer_zoo(std::uint64_t seed) {
  Stack net(seed, {3, 16, 16});
  const auto block = [&](const std::string& name, NodeId x, std::vector<std::int64_t> shape,
                         models::Conv2d conv) {
    return net.batch_norm(name + "_bn", net.conv(name, x, shape, conv), shape[0]);
  };
  NodeId x = block("stem", 0, {8, 3, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}});
  x = net.op("stem_swish", models::HardSwish{}, {x});
  x = block("depthwise", x, {8, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 8});
  x = net.op("depthwise_relu6", models::Clip{0, 6}, {x});
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {x});
  gate = net.relu("reduce_relu", net.conv("reduce", gate, {4, 8, 1, 1}, {}, true));
  gate = net.op("gate", models::HardSigmoid{}, {net.conv("excite", gate, {8, 4, 1, 1}, {}, true)});
  x = net.op("gated", models::Mul{}, {x, gate});
  x = block("pointwise", x, {16, 8, 1, 1}, {});
  const NodeId y = block("grouped", x, {16, 4, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 4});
  x = net.relu("grouped_relu", net.op("add", models::Add{}, {x, y}));
  x = block("dilated", x, {16, 16, 3, 3}, {.pads = {2, 2, 2, 2}, .dilation = {2, 2}});
  x = net.relu("dilated_relu", x);
  x = block("narrowed", x, {16, 1, 5, 5}, {.stride = {2, 2}, .pads = {2, 2, 2, 2}, .groups = 16});
  x = net.op("pool", models::GlobalAvgPool{false}, {net.relu("narrowed_relu", x)});
  return std::move(net).finish(net.linear("fc", x, 16, 5), 5);
}

quant::Student student_of(const models::Model& teacher, const QuantOptions& options) {
  quant::Student student = quant::insert_quantizers(teacher, options);
  const auto& shape = teacher.graph.input_shape;
  std::uint64_t seed = 100;
  quant::calibrate(student, [&] {
    return random_tensor({16, shape[0], shape[1], shape[2]}, ++seed);
  });
  return student;
}

}  // namespace zsq::test
