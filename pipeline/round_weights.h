// SPDX-License-Identifier: Apache-2.0
// Second-order rounding of a student's weights, on images.
#pragma once
#include "core/observer.h"
#include "pipeline/start_images.h"
#include "quant/student.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// quantize.hessian.images of them: from `bank`, or made where `bank.learn` is undefined.
// Activations have ranges taken on these images; a step behind this one may take others.
void round_weights(const models::Model& teacher, quant::Student& student, const Recipe& recipe,
                   const StartImages& bank, Observer& observer);

}  // namespace zsq::pipeline
