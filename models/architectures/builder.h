// SPDX-License-Identifier: Apache-2.0
// Builds the graph of a named architecture and takes its parameters from a state dict on the way.
#pragma once
#include <initializer_list>
#include <iterator>
#include <utility>

#include "models/execute.h"
#include "models/load.h"

namespace zsq::models {

// How an implementation names the modules of a family, and what it computes in another way. Several
// of them describe one network; a state dict is read by the one whose classifier it holds.
struct Convention {
  const char* implementation;    // "torchvision", "timm", ...
  const char* classifier;        // a module that no other convention of the family has
  double eps = 1e-5;             // of BatchNorm
  bool tensorflow_same = false;  // convolutions pad as TensorFlow's SAME; else kernel / 2 per side
};

// Patterns of module names. "blocks.#s.#u" has a letter after each # for which fill() puts text.
struct Names {
  std::string conv, norm;
};
using Fillings = std::initializer_list<std::pair<char, std::string>>;
std::string fill(const std::string& pattern, Fillings fillings);
Names fill(const Names& names, const std::string& prefix, Fillings fillings);

enum class Activation { none, relu, relu6, hard_swish, silu };

struct ConvSpec {
  std::int64_t out, kernel = 1, stride = 1, groups = 1;
  bool bias = false;
};

// Squeeze and excitation (Hu et al., arXiv 1709.01507): two 1x1 convolutions with biases.
struct GateSpec {
  std::string reduce, restore;
  std::int64_t width;
  Activation inner = Activation::relu;
  bool hard = false;  // HardSigmoid instead of Sigmoid
};

class Builder {
 public:
  // An empty state gives He-normal weights from the seed and BatchNorm (1, 0, 0, 1).
  Builder(const formats::NamedArrays& state, const BuildOptions& options, std::int64_t image_size);

  // The convention of the state or, without one, of options.implementation or the first.
  template <class Conventions>
  const auto& choose(const Conventions& conventions) {
    const auto* chosen = &*std::begin(conventions);
    for (const auto& one : conventions)
      if (fits(one)) chosen = &one;
    convention_ = *chosen;
    return *chosen;
  }

  NodeId input() const { return 0; }
  std::int64_t channels(NodeId x) const { return shapes_[static_cast<std::size_t>(x)][1]; }
  std::int64_t height(NodeId x) const { return shapes_[static_cast<std::size_t>(x)][2]; }

  // Nodes are named as the module that holds their parameters: "<name>.weight",
  // "<name>.running_mean"...
  NodeId conv(NodeId x, const std::string& name, const ConvSpec& spec);
  NodeId batch_norm(NodeId x, const std::string& name);
  NodeId conv_bn(NodeId x, const Names& names, const ConvSpec& spec,
                 Activation activation = Activation::none);
  NodeId gate(NodeId x, const GateSpec& spec);
  // Weights [out, in], or [out, C, H, W] of a convolution over the whole map [C, H, W].
  NodeId linear(NodeId x, const std::string& name, std::int64_t out);
  // As many classes as the state's weight has rows, `classes` without a state. `as_conv`: the
  // weight is kept as [classes, in, 1, 1] and there is no bias.
  NodeId classifier(NodeId x, const std::string& name, std::int64_t classes = 1000,
                    bool as_conv = false);
  NodeId max_pool(NodeId x, const std::string& name);  // 3x3, stride 2
  NodeId add(const std::string& name, Op op, std::vector<NodeId> inputs);
  NodeId activate(NodeId x, Activation activation);

  // Error(bad_input) lists what the state lacks, has too much or in another shape.
  Model finish(const std::string& architecture, NodeId output);

 private:
  bool fits(const Convention& convention) const;
  NodeId after(NodeId x, const std::string& suffix, Op op);
  NodeId append(Node node);
  void parameter(const std::string& name, const Shape& shape, double deviation, double mean);

  const formats::NamedArrays& state_;
  BuildOptions options_;
  Convention convention_{"", ""};
  Model model_;
  std::vector<Shape> shapes_;
  std::vector<std::pair<std::string, Shape>> missing_;
  std::vector<std::string> misshapen_;
};

}  // namespace zsq::models
