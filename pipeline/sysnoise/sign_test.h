// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace zsq::pipeline {

// Two-sided exact sign test: min(1, 2 P(X <= min(a, b))) for X ~ Binomial(a + b, 1/2).
double sign_test(std::int64_t a, std::int64_t b);

}  // namespace zsq::pipeline
