// SPDX-License-Identifier: Apache-2.0
// Reductions of distributions, by the rules of quant/data_free/operator_rows.h.
#pragma once
#include "quant/data_free/rows.h"

namespace zsq::quant {

// rows [kNodes, ...] -> rows of the reduced tensor. Height and width of a map, and other
// dimensions along which the distribution is the same (stride 0), are places; the rest channels.
at::Tensor reduced_rows(const models::Reduce& op, const at::Tensor& rows);

}  // namespace zsq::quant
