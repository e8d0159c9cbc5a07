// SPDX-License-Identifier: Apache-2.0
// The elementwise parts of upsampled_conv on the CPU, over one row of the small image. A row of x
// is [W, C], of differences along it [W + 1, C]; a row of y is [2W, D].
#pragma once
#include <cstdint>

#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {

// v_j = row_j - above_j, h_j = row_j - row_(j-1), vh_j = v_j - v_(j-1), with 0 outside the row. h
// may be null.
struct DifferenceRows {
  const float *row, *above;
  float *v, *h, *vh;
};
void row_differences(const DifferenceRows& t, std::int64_t width, std::int64_t channels);

// y_(2j+q) = s_j + v_j + h_(j+q),q + vh_(j+q),q for q = 0, 1; s, v [W, D], h, vh [W + 1, 2, D].
struct OutputRows {
  const float *s, *v, *h, *vh;
  float* y;
};
void combine_row(const OutputRows& t, std::int64_t width, std::int64_t channels);

// The adjoint for both rows of y that belong to one row of x.
struct OutputGradientRows {
  const float* dy[2];
  float *s, *v[2], *h, *vh[2];
};
void spread_rows(const OutputGradientRows& t, std::int64_t width, std::int64_t channels);

// The gradient of a row of x: dx_j += s_j + h_j - h_(j+1), and from the rows of v and vh at its top
// (sign 1) and at its bottom (sign -1) dx_j += sign (v_j + vh_j - vh_(j+1)).
void gather_plain(const float* s, const float* h, float* dx, std::int64_t width,
                  std::int64_t channels);
void gather_vertical(const float* v, const float* vh, float* dx, float sign, std::int64_t width,
                     std::int64_t channels);

}  // namespace zsq::cuda_kernels
