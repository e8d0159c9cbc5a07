// SPDX-License-Identifier: Apache-2.0
// The values that a network's pixels have where no preprocessing says so. The file often tells: the
// running statistics of the first BatchNorm layers are those of what the training images gave them,
// and constants that stand before the first layer are a preprocessing of their own.
#pragma once
#include <string>

#include "eval/preprocessing.h"
#include "models/graph.h"

namespace zsq::pipeline {

struct PixelRange {
  double low = 0, high = 0;  // of all channels, in units of the network's input; equal: not known
  std::string name = {};     // "0..255"
  std::string reason = {};   // what decided or, where it is not known, why nothing does
  bool known() const { return low < high; }
  std::string in_words() const;  // "0..255, inferred from ..." or "not known: ..."
};

// The ranges that are tried are 0..255, 0..1, -1..1, -0.5..0.5, -128..127, that of ImageNet's mean
// and deviation and that of its mean alone, on dead-leaves images and, of one channel, on such
// images as dark as digits and as light as scanned text. A range is chosen where the loss of
// PixelStatistics on it is below 0.5, the mean of the pixels in training is one that it can have,
// and no other range that can have it has a loss below twice as much and 0.1 more. Where the
// BatchNorm layers do not decide, or there are none, constants do that scale pixels of 0..255 or of
// 0..1 before the first layer.
PixelRange infer_pixel_range(const models::Model& model);

// Why the network cannot have been trained with images of this preprocessing: its BatchNorm layers
// saw others, by a loss above 1, or by a mean 1.2 deviations away, and by five times the loss of
// the range that fits. Without BatchNorm: on dead-leaves images of this preprocessing it is certain
// of everything (uncertainty below 0.05), says the same of everything (information below 0.005), or
// 70 % of the channels of its first convolution never change their sign, or 50 % of what passes its
// first ReLU6 is at the ceiling, while at most half as much is on another common range. Empty: it
// may have been, or the network does not tell.
std::string contradiction(const models::Model& model, const eval::Preprocessing& preprocessing);

// Whether the file has what decides the range: BatchNorm statistics, or constants that scale the
// pixels before the first layer. What the predictions look like can contradict, but not confirm:
// networks answer pixels of the wrong range in many ways.
bool can_tell_pixels(const models::Model& model);

}  // namespace zsq::pipeline
