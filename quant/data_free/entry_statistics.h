// SPDX-License-Identifier: Apache-2.0
// What a block reads, brought to the means and deviations that BatchNorm statistics imply for it
// (quant/data_free/moments.h). Made images then serve for how values vary together, and not for how
// large they are, as in GPTQ-style rounding (quant/rounding/input_moments.h).
#pragma once
#include <map>

#include "models/blocks.h"
#include "models/graph.h"

namespace zsq::quant {

class EntryStatistics {
 public:
  // Keeps a reference to the teacher.
  EntryStatistics(const models::Model& teacher, const std::vector<models::Block>& blocks);

  // x -> a x + b with one a and b per channel for all values [n, C, ...] in both lists, in place:
  // those that give `float_values`, what the teacher has at `entry`, its inferred mean and
  // deviation. a is held to 1/8 to 8; a channel that does not vary stays. Where the entry is a
  // clipped tensor, so is the result. The network's input, whose pixels need no correction, stays.
  void impose(models::NodeId entry, const std::vector<at::Tensor>& float_values,
              const std::vector<at::Tensor>& student_values) const;

 private:
  struct Moments {
    at::Tensor mean, deviation;  // f64 [C]
  };
  const models::Graph& graph_;
  std::map<models::NodeId, Moments> known_;
};

}  // namespace zsq::quant
