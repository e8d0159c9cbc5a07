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

#include "models/outputs.h"

namespace zsq::models {

using NodeId = int;  // index into Graph::nodes
class ParameterStore;
struct Tail;  // models/tail.h

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
// clamp(alpha s x + beta, 0, 1) with s 1, or params scale [C, 1, 1].
struct HardSigmoid {
  double alpha = 1.0 / 6, beta = 0.5;
};
struct HardSwish {};  // x HardSigmoid(x), with its params
struct Gelu {};       // x Phi(x), Phi: distribution function of the normal distribution
// Functions of one value that have no integer form in any runtime; models/elementwise.h defines
// each, with the meaning of alpha and beta.
enum class Function {
  elu,
  celu,
  selu,
  tanh,
  softplus,
  mish,
  gelu_tanh,
  softsign,
  thresholded_relu,
  erf,
  exp,
  log,
  sqrt,
  reciprocal,
  abs,
  neg,
  power,
  sin,
  cos,
  floor,
  ceil,
  round,
  sign
};
struct Elementwise {
  Function function;
  double alpha = 1, beta = 0;
};
struct PRelu {};  // max(x, 0) + slope min(x, 0); params: slope, broadcast to x
// Over the channels of [N, C, H, W] at each place, or of [N, C]; params: gamma, beta.
struct LayerNorm {
  double eps = 1e-5;
  bool of_map = true;  // four dimensions, else two
};
struct Add {};  // two inputs, broadcasting
struct Mul {};
enum class BinaryKind { sub, div, maximum, minimum, power };
struct Binary {  // two inputs, broadcasting
  BinaryKind kind;
};
struct MatMul {};  // two inputs [N, ..., i, j] and [N, ..., j, k]; leading dimensions broadcast
// Over `axes` (in order, none is the batch), which stay as 1 with keepdims.
enum class ReduceKind { mean, sum, max, min, product };
struct Reduce {
  ReduceKind kind;
  std::vector<std::int64_t> axes;
  bool keepdims = true;
};
struct Concat {
  std::int64_t axis = 1;
};
struct MaxPool {
  Pair kernel, stride{1, 1};
  Pads pads{};
  Pair dilation{1, 1};
  bool ceil_mode = false;
};
// In ceil mode a window that begins in the padding after the map is dropped, and what a window
// covers beyond map and pads does not count.
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
// reflect: without the border's own value; edge: repeats it; wrap: from the other side.
enum class PadMode { constant, reflect, edge, wrap };
struct Pad {
  std::vector<std::int64_t> before, after;
  double value = 0;
  PadMode mode = PadMode::constant;
};  // one entry per dimension
struct Expand {
  std::vector<std::int64_t> shape;
};  // without the batch; dimensions of 1 are repeated
struct Resize {
  Pair scale;
};  // nearest, by whole factors
// Any other change of height and width, as ONNX's Resize defines it (models/interpolate.h).
enum class InterpolationMode { nearest, linear, cubic };
enum class ResizeCoordinates {
  half_pixel,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  half_pixel_symmetric,
  tf_half_pixel_for_nn
};
enum class NearestRounding { round_prefer_floor, round_prefer_ceil, floor, ceil };
struct Interpolate {
  Pair size;                      // of the output
  std::array<double, 2> scale{};  // output / input, where the file gives it
  InterpolationMode mode = InterpolationMode::linear;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  NearestRounding rounding = NearestRounding::round_prefer_floor;
  double cubic_coefficient = -0.75;
  bool antialias = false, exclude_outside = false;
};
struct Softmax {
  std::int64_t axis = 1;
};
struct Custom {
  std::shared_ptr<const CustomOp> op;
};

using Op =
    std::variant<Input, Parameter, Conv2d, Linear, BatchNorm, Clip, LeakyRelu, Sigmoid, HardSigmoid,
                 HardSwish, Gelu, Elementwise, PRelu, LayerNorm, Add, Mul, Binary, MatMul, Reduce,
                 Concat, MaxPool, AvgPool, GlobalAvgPool, Flatten, Reshape, Transpose, Slice, Pad,
                 Expand, Resize, Interpolate, Softmax, Custom>;

struct Node {
  std::string name;  // unique in the graph, stable through rewrites
  Op op;
  std::vector<NodeId> inputs;
  std::map<std::string, std::string> params = {};  // role -> name in the ParameterStore
};

std::string op_name(const Op& op);  // "Conv2d", ...; a Custom gives its kind()

// What an exported file writes in place of a node that depends on an open size of the image.
struct OpenForm {
  // A Reshape with 0 (as in its input) and -1 (what is left; of several, no file can have it unless
  // an operator of its own stands for the node), a Slice counted from the end, a
  // MaxPool, or an Interpolate to a size.
  Op op;
  std::string size_of;  // of an Interpolate: the node whose height and width it has; empty: its own
};
using OpenForms = std::map<std::string, OpenForm>;  // by the node's name

// What of a network's file is not in its nodes. Rewrites hand it on.
struct Signature {
  std::string input = "input", output = "logits";  // names of the tensors
  bool channels_last = false;                      // the file takes images [N, H, W, C]
  std::vector<std::int64_t> output_shape = {};     // without the batch; empty: of Graph::output
  OutputFunction function = OutputFunction::none;
  // Several outputs, or one with places, are kind.outputs() and state name, shape and function
  // there.
  OutputRow kind = OutputKind::logits;
  bool open_height = false;               // the file leaves it open, and so may an exported one
  bool open_width = false;                // or the length of signals
  bool open_channels = false;             // the file says nothing of the number of channels
  bool one_dimensional = false;           // the file takes signals [N, C, L]: maps of height 1
  bool one_image = false;                 // the file takes [C, H, W], without a batch
  OpenForms open_forms = {};              // of the nodes that follow an open size
  std::shared_ptr<const Tail> tail = {};  // null: the outputs above are those of the file
};

struct Graph {
  std::vector<Node> nodes;
  NodeId input = 0, output = 0;
  std::array<std::int64_t, 3> input_shape{};  // C, H, W
  Signature signature = {};

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
  at::Device device() const;     // where all of them lie; the CPU if there is none
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
  // BatchNorm statistics are those of synthetic images, since the file has too few of training.
  bool statistics_of_images = false;
};

}  // namespace zsq::models
