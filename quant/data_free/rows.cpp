// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/rows.h"

namespace zsq::quant {

at::Tensor as_large_as(const models::Shape& shape, const at::Tensor& rows) {
  models::Shape sizes = shape;
  sizes[0] = rows.size(0);
  return rows.expand(sizes);
}

bool same_everywhere(const at::Tensor& rows) {
  return rows.dim() == 4 && (rows.size(2) == 1 || rows.stride(2) == 0) &&
         (rows.size(3) == 1 || rows.stride(3) == 0);
}

at::Tensor one_place(const at::Tensor& rows) { return rows.narrow(2, 0, 1).narrow(3, 0, 1); }

}  // namespace zsq::quant
