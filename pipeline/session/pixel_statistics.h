// SPDX-License-Identifier: Apache-2.0
// How far what a network's first BatchNorm layers see of drawn images lies from what they saw in
// training.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace zsq::pipeline {

// The first layers of a network, up to its third BatchNorm. Their statistics tell which values the
// pixels had, because nothing but the pixels decides them.
class PixelStatistics {
 public:
  explicit PixelStatistics(const models::Model& model);

  bool any() const { return !layers_.empty(); }  // whether there is a BatchNorm
  const std::string& first_layer() const { return first_layer_; }

  // images f32 [N, C, H, W]. Mean over the layers, of each the mean over its channels, of
  //   (ln sqrt(v' / v))^2 + (m' - m)^2 / (v' + v)
  // with mean and variance m', v' of the batch and the running ones m, v; the first term is at most
  // 50, and channels that are constant in either are left out. 0: as in training; 0.5: standard
  // deviations twice as large, or half as large.
  double loss(const at::Tensor& images) const;

  // The mean over the channels of the pixels in training, in units of the network's input: what
  // explains the running means of the first BatchNorm best, least squares in units of its running
  // deviations. Empty where what it sees is no linear function of the pixels, or where it has too
  // few channels to tell.
  std::optional<double> mean_pixel() const;

 private:
  struct Layer {
    at::Tensor mean, variance;  // f64 [channels]
  };
  std::vector<at::Tensor> inputs_of_layers(const at::Tensor& images) const;
  at::Tensor response(const at::Tensor& colour) const;

  models::Graph graph_;  // ends with what the last of the layers reads
  const models::ParameterStore& parameters_;
  std::vector<models::NodeId> taps_;
  std::vector<Layer> layers_;
  std::string first_layer_;
};

// How a network answers drawn images. Where it has no BatchNorm, this alone tells pixels that are
// far from those of its training.
struct PredictionSpread {
  // Of the classes' probabilities, by the logarithm of their number: the mean entropy of an image's
  // prediction, 0 where it is certain of every image; and what the prediction tells about the
  // image, the entropy of the mean prediction less that mean, 0 where all images are alike to it.
  // NaN for fewer than 8 classes, and for labels and values, where both may be so by right.
  double uncertainty, information;
};
PredictionSpread spread_of_predictions(const models::Model& model, const at::Tensor& images);

// The share of the channels of the first convolution whose output has one sign at 99.9 % of the
// places of the images: biases outweigh pixels that are too small. NaN without a convolution.
double one_sided_channels(const models::Model& model, const at::Tensor& images);

// Of what the first ReLU6 after a convolution lets through, a clip of 0 to any finite ceiling, the
// share that is at its ceiling: pixels that are too large saturate it. NaN without one.
double share_at_ceiling(const models::Model& model, const at::Tensor& images);

}  // namespace zsq::pipeline
