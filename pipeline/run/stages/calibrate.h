// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "pipeline/run/prepare.h"
#include "quant/student.h"

namespace zsq::pipeline {

// Activation ranges by quantize.activations.range, from the run's bank or dead leaves where the
// rule wants images, then bias correction where the student's options ask for it.
void calibrate(const Run& run, quant::Student& student);

}  // namespace zsq::pipeline
