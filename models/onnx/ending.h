// SPDX-License-Identifier: Apache-2.0
// What a network does last. Softmax, LogSoftmax or Sigmoid over its classes leaves the graph for
// Graph::signature, so that every measure works on what enters it; dimensions of 1 in the output
// leave it as well. Outputs with places (segmentation, boxes, heat maps) are described one by one.
#pragma once
#include "models/onnx/importer.h"

namespace zsq::models::onnx {

struct Ending {
  NodeId node;  // what enters the function
  OutputFunction function = OutputFunction::none;
  OutputKind kind = OutputKind::logits;
};

// Whether the output is one row of numbers per image: at most one dimension is not 1.
bool is_row(const Shape& shape);

// `output`: of the file, of one row (is_row). One
// number per image, the output of a BatchNorm, what a bounded function (a Tanh, a division by the
// length) gives, also times constants, and a Concat of that or of unlike things are values; what a
// Sigmoid follows is scores; the rest is logits.
Ending find_ending(const Graph& graph, const std::vector<Shape>& shapes,
                   const std::map<NodeId, LogSoftmaxPart>& log_softmaxes, NodeId output);

// The same of an output that is no row, or one of several; `node` is what gives its part of the
// row, in the order of the file's elements. With places, what a Sigmoid follows is scores; what a
// Softmax or LogSoftmax follows, and what is `alone`, as high and wide as the image and of two or
// more than three channels, a map of classes; the rest is values.
struct DescribedOutput {
  NodeId node;
  Output output;
};
DescribedOutput describe_output(const Graph& graph, const std::vector<Shape>& shapes,
                                const std::map<NodeId, LogSoftmaxPart>& log_softmaxes,
                                NodeId output, const std::string& name, bool alone);

// A file that looks for the largest along `axis` of a value means classes there.
void expect_classes(std::int64_t axis, Output& output);

// Of several outputs, where a Softmax or Sigmoid ends a row: whoever exported the file made
// probabilities of what decides a class, so that a row without a function is values (the boxes and
// landmarks beside MTCNN's probability of a face).
void expect_values_beside_probabilities(std::vector<Output>& outputs);

}  // namespace zsq::models::onnx
