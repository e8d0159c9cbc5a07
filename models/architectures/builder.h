// SPDX-License-Identifier: Apache-2.0
// Builds the graph of a named architecture and takes its parameters from a state dict on the way.
#pragma once
#include "models/execute.h"
#include "models/load.h"

namespace zsq::models {

struct ConvSpec {
  std::int64_t out, kernel = 1, stride = 1, groups = 1;
  bool tensorflow_same = false;  // pads as TensorFlow's SAME; else kernel / 2 on each side
};

class Builder {
 public:
  // An empty state gives He-normal weights from `seed` and BatchNorm (1, 0, 0, 1).
  Builder(const formats::NamedArrays& state, std::uint64_t seed, std::int64_t image_size);

  bool state_has(const std::string& name) const { return formats::find(state_, name) != nullptr; }
  NodeId input() const { return 0; }
  std::int64_t channels(NodeId x) const { return shapes_[static_cast<std::size_t>(x)][1]; }

  // Nodes are named as the module that holds their parameters: "<name>.weight",
  // "<name>.running_mean"...
  NodeId conv(NodeId x, const std::string& name, const ConvSpec& spec);
  NodeId batch_norm(NodeId x, const std::string& name, double eps = 1e-5);
  // As many classes as the state's weight has rows, `classes` without a state. `as_conv`: the
  // weight is kept as [classes, in, 1, 1] and there is no bias.
  NodeId classifier(NodeId x, const std::string& name, std::int64_t classes, bool as_conv = false);
  NodeId add(const std::string& name, Op op, std::vector<NodeId> inputs);
  NodeId relu(NodeId x) { return after(x, ".relu", Clip{}); }
  NodeId relu6(NodeId x) { return after(x, ".relu6", Clip{0, 6}); }

  // Error(bad_input) lists what the state lacks, has too much or in another shape.
  Model finish(const std::string& architecture, NodeId output);

 private:
  NodeId after(NodeId x, const std::string& suffix, Op op);
  NodeId append(Node node);
  void parameter(const std::string& name, const Shape& shape, double deviation, double mean);

  const formats::NamedArrays& state_;
  std::uint64_t seed_;
  Model model_;
  std::vector<Shape> shapes_;
  std::vector<std::string> missing_, misshapen_;
};

// One function per architecture; classes: the default of classifier().
Model build_resnet18(const formats::NamedArrays& state, std::uint64_t seed);
Model build_resnet50(const formats::NamedArrays& state, std::uint64_t seed);
Model build_resnet20_cifar10(const formats::NamedArrays& state, std::uint64_t seed);
Model build_resnet20_cifar100(const formats::NamedArrays& state, std::uint64_t seed);
Model build_mobilenet_v2(const formats::NamedArrays& state, std::uint64_t seed);
Model build_efficientnet_lite0(const formats::NamedArrays& state, std::uint64_t seed);

}  // namespace zsq::models
