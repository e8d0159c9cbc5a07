// SPDX-License-Identifier: Apache-2.0
// What the outputs of a network mean, which decides how two of them are compared. A graph gives
// one row of K numbers per image: one output, or several outputs one after the other.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zsq::models {

//   logits   softmax makes class probabilities of them, and the largest is the decision
//   scores   of labels that exclude each other not: sigmoid makes probabilities, 0.5 decides
//   values   numbers of their own: embeddings, coordinates, ages, heat maps
//   map      logits of classes at each of several places: segmentation
//   several  outputs of these kinds
enum class OutputKind { logits, scores, values, map, several };
// What the file does last with logits or scores. Graph::output is what enters it, so that every
// measure and every loss works on that; exported files keep the function.
enum class OutputFunction { none, softmax, log_softmax, sigmoid };

// One output of a network's file that is no single row of numbers, or one of several.
struct Output {
  std::string name;
  std::vector<std::int64_t> shape;  // in the file, without the batch
  OutputKind kind = OutputKind::values;
  OutputFunction function = OutputFunction::none;
  std::int64_t axis = 1;  // of [N, shape...]: the classes of a map, and what softmax runs over

  std::int64_t length() const;  // of its part of the row
  bool has_places() const;      // more than one dimension is longer than 1
};

// What the row [N, K] of a graph consists of.
class OutputRow {
 public:
  OutputRow(OutputKind kind) : kind_(kind) {}  // NOLINT: a kind alone is one row of that kind
  explicit OutputRow(std::vector<Output> outputs)
      : kind_(OutputKind::several), outputs_(std::move(outputs)) {}

  operator OutputKind() const { return kind_; }  // NOLINT: is compared with kinds everywhere
  // In their order in the row; empty where the row is one output without places.
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  OutputKind kind_;
  std::vector<Output> outputs_;
};

}  // namespace zsq::models
