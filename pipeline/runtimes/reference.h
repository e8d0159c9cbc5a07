// SPDX-License-Identifier: Apache-2.0
// What this engine computes of a quantized network, and how far what a runtime computes may lie
// from it.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/observer.h"
#include "models/graph.h"

namespace zsq::pipeline {

// Of two sets of outputs [N, K], as before_last_function() gives them.
struct OutputDifference {
  double agreement = 0;  // losses::agreement(): of logits the share of the images of equal arg-max
  double largest = 0;    // |b - a|
  double rms = 0;        // root of the mean of (b - a)^2
};
OutputDifference difference_of(const models::Graph& graph, const at::Tensor& a,
                               const at::Tensor& b);

struct Reference {
  models::Model model;   // quantized
  at::Tensor images;     // f32 [N, C, H, W]
  at::Tensor outputs;    // f32 [N, K], as before_last_function() gives them
  double step = 0;       // of a quantization in an output, at most; 0: none is known
  double magnitude = 0;  // the largest output
  // What rounding alone changes, the larger of two in the mean square: another order of summation,
  // on some of the images, and thresholds that lie a few units in the last place higher, on all. A
  // sum next to a threshold takes the one code or the other, and the layers that follow carry that
  // on; any runtime sums and scales in an order of its own.
  OutputDifference rounding;

  // Whether outputs that differ so are the same but for rounding: nowhere more than a step, or in
  // the mean square at most three times as far as rounding alone puts them.
  bool explains(const OutputDifference& difference) const;
};
Reference make_reference(models::Model model, at::Tensor images, Observer& observer);

// What a file gave for N images, f32 [N, K], with its last function undone: of a softmax logarithms
// of at least -27, of sigmoids scores between -8 and 8, which f32 still tells apart.
at::Tensor before_last_function(const models::Graph& graph, const at::Tensor& file_outputs);

// One code of the last layer's input at the largest weight of that layer, or of a quantizer that
// follows; 0 if neither is found.
double output_step(const models::Model& model);

}  // namespace zsq::pipeline
