// SPDX-License-Identifier: Apache-2.0
// What follows the last stage of a run.
#pragma once
#include "pipeline/run/prepare.h"
#include "quant/student.h"

namespace zsq::pipeline {

// The files that the recipe asks for, and what the report says of them. Nothing in these depends on
// the clock or on an evaluation, so that a run that is resumed writes them again.
void write_files(const Run& run, const quant::Student& student, QuantizeReport& report);

// Top-1 and top-5 of the float network and of the student on the run's real images, or the measures
// of their boxes or pixels; nothing without them, or where the outputs are no classes. What is
// shipped is what is measured: the exported file, if there is one, for it rounds biases to
// integers, which alone moves a prediction in a hundred at few bits.
void evaluate(const Run& run, const quant::Student& student, QuantizeReport& report);

// About how long both will take: the evaluation from one batch of it, and writing about as long as
// reading did.
double seconds_of_finish(const Run& run, const quant::Student& student);

}  // namespace zsq::pipeline
