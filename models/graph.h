// SPDX-License-Identifier: Apache-2.0
// The one description of a network: nodes in topological order, parameters by name. Importers and
// built-in architectures produce it, rewrites are functions Graph -> Graph, exporters read it.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace zsq::models {

using NodeId = int;  // index into Graph::nodes
class ParameterStore;

// The open seam for operators of higher folders (quantizers, fused groups).
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  virtual std::string kind() const = 0;  // "activation_quantizer", ...: printed by inspect
  // Differentiable where the operator is; parameters are looked up by the names that the op holds.
  virtual at::Tensor forward(const std::vector<at::Tensor>& inputs,
                             const ParameterStore& parameters) const = 0;
};

// Spatial pads are {top, left, bottom, right}; they may be asymmetric (TensorFlow SAME).
using Pads = std::array<std::int64_t, 4>;
using Pair = std::array<std::int64_t, 2>;

struct Input {};
struct Parameter {};  // params: value. Makes a parameter a node, so that a quantizer can act on it
// inputs: x [, weight node]; params: weight (where it is not an input), bias (optional)
struct Conv2d {
  Pair stride{1, 1};
  Pads pads{};
  Pair dilation{1, 1};
  std::int64_t groups = 1;
};
struct Linear {};  // inputs and params as Conv2d; weight [out, in]
struct BatchNorm {
  double eps = 1e-5;
};  // params: gamma, beta, mean, variance (inference)
struct Clip {
  float lo = 0;
  float hi = std::numeric_limits<float>::infinity();
};  // ReLU, ReLU6. params: lower and upper [1, C, 1, 1] in place of lo and hi, where channels have
    // bounds of their own
struct LeakyRelu {
  double slope = 0.01;
};
struct Sigmoid {};
struct HardSigmoid {
  double alpha = 1.0 / 6, beta = 0.5;
};
struct HardSwish {};
struct Gelu {};  // x Phi(x), Phi: distribution function of the normal distribution
// Over the channels of [N, C, H, W] at each place, or of [N, C]; params: gamma, beta.
struct LayerNorm {
  double eps = 1e-5;
  bool of_map = true;  // four dimensions, else two
};
struct Add {};  // two inputs, broadcasting
struct Mul {};
struct Concat {
  std::int64_t axis = 1;
};
struct MaxPool {
  Pair kernel, stride{1, 1};
  Pads pads{};
  Pair dilation{1, 1};
  bool ceil_mode = false;
};
struct AvgPool {
  Pair kernel, stride{1, 1};
  Pads pads{};
  bool ceil_mode = false, count_include_pad = true;
};
struct GlobalAvgPool {
  bool keepdims = true;
};
struct Flatten {};  // all but the batch
struct Reshape {
  std::vector<std::int64_t> shape;
};  // without the batch, which stays first
struct Transpose {
  std::vector<std::int64_t> perm;
};
struct Slice {
  std::int64_t axis, start, end, step = 1;
};
struct Pad {
  std::vector<std::int64_t> before, after;
  double value = 0;
};  // one entry per dimension
struct Resize {
  Pair scale;
};  // nearest
struct Softmax {
  std::int64_t axis = 1;
};
struct Custom {
  std::shared_ptr<const CustomOp> op;
};

using Op =
    std::variant<Input, Parameter, Conv2d, Linear, BatchNorm, Clip, LeakyRelu, Sigmoid, HardSigmoid,
                 HardSwish, Gelu, LayerNorm, Add, Mul, Concat, MaxPool, AvgPool, GlobalAvgPool,
                 Flatten, Reshape, Transpose, Slice, Pad, Resize, Softmax, Custom>;

struct Node {
  std::string name;  // unique in the graph, stable through rewrites
  Op op;
  std::vector<NodeId> inputs;
  std::map<std::string, std::string> params = {};  // role -> name in the ParameterStore
};

std::string op_name(const Op& op);  // "Conv2d", ...; a Custom gives its kind()

struct Graph {
  std::vector<Node> nodes;
  NodeId input = 0, output = 0;
  std::array<std::int64_t, 3> input_shape{};  // C, H, W

  NodeId add(Node node);  // appends; Error(internal) on a duplicate name or a later input
  const Node& operator[](NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  Node& operator[](NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  NodeId id_of(const std::string& name) const;  // Error(internal) if absent
  std::vector<std::vector<NodeId>> consumers() const;
};

template <class T>
const T* get_if(const Node& node) {
  return std::get_if<T>(&node.op);
}
template <class T>
bool is(const Node& node) {
  return std::holds_alternative<T>(node.op);
}

// Tensors by name, in order of insertion.
class ParameterStore {
 public:
  const at::Tensor& at(const std::string& name) const;  // Error(internal) names what is missing
  at::Tensor& at(const std::string& name);
  bool contains(const std::string& name) const;
  void set(const std::string& name, at::Tensor value);
  const std::vector<std::string>& names() const { return names_; }
  at::Device device() const;     // where all of them lie; Error(internal) if there is none
  ParameterStore clone() const;  // deep copy, detached, no gradients

 private:
  std::vector<std::string> names_;
  std::map<std::string, at::Tensor> tensors_;
};

struct Model {
  Graph graph;
  ParameterStore parameters;
  std::string source_path, format, producer;  // format: "onnx", "pt2", "pth", ...
  std::vector<std::string> warnings;          // for the user: what is not as the file says
  std::string architecture;                   // built-in name, empty for an imported graph
  std::int64_t classes = 0;                   // length of the logits
};

}  // namespace zsq::models
