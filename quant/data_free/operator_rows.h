// SPDX-License-Identifier: Apache-2.0
// Distributions (quant/data_free/distribution.h) of what operators without statistics of their own
// give:
//   Elementwise, PRelu   f of the rows, where f is defined: Log, Reciprocal and powers that are not
//                        whole or negative see nothing nearer to 0 than 1/100 of the root mean
//                        square of their input, on the side where they are defined; Sqrt and
//                        positive powers that are not whole see 0 for what is negative
//   HardSigmoid, HardSwish  with a scale per channel: of the rows
//   Binary               of constants and of functions of one and the same tensor exact; else of
//                        independent tensors (sub by its exact moments). Denominators and bases as
//                        above
//   normalisations       (models/normalized.h) x by the mean of its length, as that is of many
//   values and
//                        grows with each; at most the root of how many the mean is of, as is true
//                        of every vector
//   Reduce               over places of a map (height and width, or a dimension along which the
//                        distribution is the same) as pools: of n values with a correlation r the
//                        deviation of the mean shrinks by sqrt(r + (1 - r) / n), the largest is
//                        that of n^(1 - r) independent ones. Over channels of independent values,
//                        each with its own distribution: sums of 16 and more are normal
//   MatMul               N(A B, ...) with the exact variance of sums of products of independent
//                        values, those of places correlated by r; sums of less than 4 are sampled
//   Softmax              sampled (quant/data_free/sampled_rows.h), within [0, 1]
//   Interpolate          values of one channel next to each other are alike; a mean of several has
//                        the deviation of a pool's
//   Pad                  not constant: the values that it repeats
// All results are held to +-1e15, so that their squares are finite.
#pragma once
#include "quant/data_free/rows.h"

namespace zsq::quant {

// The rule for one of these nodes; none for others. `one_source`: quant/data_free/sources.h.
// constants[i]: whether input i is the same in every image. shape: of the output for one image.
RowsRule operator_rule(const models::Node& node, bool one_source,
                       const std::vector<bool>& constants, const models::Shape& shape);

// The rule for a division of values by their own length; none for other nodes. shapes: of all nodes
// for one image.
RowsRule normalized_rule(const models::Graph& graph, models::NodeId id,
                         const std::vector<models::Shape>& shapes);

}  // namespace zsq::quant
