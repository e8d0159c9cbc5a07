// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/precision.h"

namespace at {
enum class Float32Precision;
}

namespace zsq::models {

// How this process multiplies f32 on GPUs from now on: products of 10-bit mantissas for
// Precision::tf32, IEEE for the others (libtorch's own default is a mixture: tf32 in convolutions).
void set_float32_products(Precision precision);

// The same while one of these lives, and then as it was before. Not for two threads at once.
class Float32Products {
 public:
  explicit Float32Products(Precision precision);
  ~Float32Products();
  Float32Products(const Float32Products&) = delete;
  Float32Products& operator=(const Float32Products&) = delete;

 private:
  at::Float32Precision convolutions_, matrices_;  // before
};

}  // namespace zsq::models
