// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

namespace zsq::exporters::ncnn {

// The number that ncnn's Permute has for an order of 2, 3 or 4 dimensions, outermost first and
// without the batch: output dimension i is dimension order[i] of the input.
std::int64_t permutation(const std::vector<std::int64_t>& order);

}  // namespace zsq::exporters::ncnn
