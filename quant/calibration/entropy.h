// SPDX-License-Identifier: Apache-2.0
// Entropy calibration (TensorRT; S. Migacz, GTC 2017): of the ranges r * (min, max), r in {1, 0.99,
// ..., 0.01}, that with the least sum_i p_i ln(p_i / q_i) over a histogram's bins inside. p: with
// the mass outside in the bins at the ends; q: without, that of each code shared out among its
// bins.
#pragma once
#include "quant/calibration/range_observers.h"

namespace zsq::quant {

std::unique_ptr<RangeObserver> entropy_observer(const ActivationOptions&, const QuantizerSpec&);

}  // namespace zsq::quant
