// SPDX-License-Identifier: Apache-2.0
// Networks of inverted residuals: MobileNetV2, MobileNetV3 and EfficientNet.
#pragma once
#include "models/architectures/builder.h"

namespace zsq::models {

// 1x1 to `hidden`, depthwise, [squeeze and excitation,] 1x1 to `out`; the input is added if it has
// the output's shape. Without the first if the input has `hidden` channels already.
struct InvertedResidual {
  std::int64_t kernel, stride, hidden, out;
  std::int64_t squeezed = 0;  // width of squeeze and excitation; 0: none
  Activation activation = Activation::relu6;
};

struct InvertedResidualDesign {
  std::int64_t stem;                          // width
  std::vector<InvertedResidual> units;        // a stage is a run of units with one `out`
  std::int64_t head;                          // width
  Activation activation = Activation::relu6;  // of stem, head and what follows
  Activation gate = Activation::silu;         // inside squeeze and excitation
  bool hard_gate = false;
  std::int64_t hidden = 0;  // of a linear layer before the classifier; 0: none
};

// Letters of `unit`: s, u: stage and unit from 0; S: stage from 1; i, I: unit of the network from 0
// and 1; p, q: pytorchcv's stage, which ends where the map is halved, and its unit, from 1. Of a
// part: k: its place in the unit from 0, squeeze and excitation counted; n: convolution from 1. Of
// the head: S and I as of one more stage and unit, s and i as well.
struct InvertedResidualNames : Convention {
  Names stem, head;
  const char* unit;
  Names expand, depthwise, project;
  const char *reduce = "", *restore = "", *hidden = "";
  const char* project_of_two = nullptr;  // convolution of `project` without `expand`
  bool as_conv = false;                  // expands by 1 as well; a classifier without bias
};

// The logits.
NodeId inverted_residual_network(Builder& net, const InvertedResidualDesign& design,
                                 const InvertedResidualNames& names);

// timm's names of all such networks, with TensorFlow's padding and epsilon for its "tf_" networks.
InvertedResidualNames timm_names(bool tensorflow);

}  // namespace zsq::models
