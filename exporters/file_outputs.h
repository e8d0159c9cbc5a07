// SPDX-License-Identifier: Apache-2.0
// The input and the outputs of a network's file, as an exported file has them again.
#pragma once
#include "exporters/onnx_builder.h"
#include "models/execute.h"
#include "models/tail.h"

namespace zsq::exporters {

struct FileOutput {
  models::NodeId node;  // its value, in the order of the file's elements
  std::string name;
  models::OutputFunction function = models::OutputFunction::none;
  std::int64_t axis = 1;            // of the function, in the file's shape
  std::vector<std::int64_t> shape;  // in the file, without the batch
  // The only one, a row [N, K]: the function is before the shape, which where it is empty is as the
  // node's value has it.
  bool is_row = false;

  models::Shape full_shape(const models::Shape& of_node) const;  // for a batch of one
};

// One, or the parts of the row of several (models::OutputRow), each before it is flattened where
// that is in the file's shape.
std::vector<FileOutput> file_outputs(const models::Graph& graph);

// Error(unsupported_model) for targets whose files give one row of numbers and nothing else.
void require_one_row(const models::Signature& file, const std::string& target);

// The nodes that make one row of several outputs, which no file has.
bool joins_outputs(const models::Graph& graph, models::NodeId id);

// The declarations; `of_node`: the shape of the input or of the output's node, for a batch of one.
// The batch is open, and height and width where the signature leaves them open.
formats::onnx::ValueInfo describe_input(const models::Signature& file, const std::string& name,
                                        const models::Shape& of_node);
formats::onnx::ValueInfo describe_output(const models::Signature& file, const FileOutput& output,
                                         const models::Shape& of_node);

// What the file takes as `x`, as a map [N, C, H, W], which the input's node is.
std::string from_file_layout(OnnxBuilder& builder, const models::Signature& file,
                             const std::string& x, const models::Shape& of_node);
std::string size_in_words(const models::Shape& image);  // "224x320"

// Function and shape, in float, and the name. `x`: the node's value, of shape `shape`.
void write_output(OnnxBuilder& builder, const std::string& x, const models::Shape& shape,
                  const FileOutput& output);

// The nodes of file.tail, which there is, read the outputs that were written before it, and give
// the file's own. Error(unsupported_model) where a node of an older opset means something else in
// this one.
void reserve_names(OnnxBuilder& builder, const models::Tail& tail);
void write_tail(OnnxBuilder& builder, const models::Signature& file);

}  // namespace zsq::exporters
