// SPDX-License-Identifier: Apache-2.0
// The stages of a run between the float network and the files, in the order of docs/method.md.
#pragma once
#include "pipeline/stages/run.h"

namespace zsq::pipeline {

// Reads the model, the bank and where real images are; opens the output folder. What is wrong with
// the input shows here, before anything takes time.
Run prepare(const std::filesystem::path& model, const QuantizeOptions& options,
            const std::filesystem::path& output, Observer& observer);

// Activation ranges by quantize.activations.range. Images, where that rule wants any, are those of
// the bank or dead leaves.
void calibrate(const Run& run, quant::Student& student);

// GPTQ-style rounding on quantize.gptq.images images.
void round_weights(const Run& run, quant::Student& student, std::int64_t first_part,
                   const PartDone& done);

// Block reconstruction, with ranges from its images. `seconds`: what it may take; 0: any. `blocks`:
// those that are done, which it goes on from and adds to.
void reconstruct(const Run& run, quant::Student& student, double seconds,
                 std::vector<BlockResult>& blocks, const PartDone& done);

// Fine-tuning. `calibrated`: the student has its activation ranges, and keeps them; otherwise they
// are taken at the end of the generator's warm-up. Goes on from its own checkpoint where `resume`.
train::TrainReport fine_tune(const Run& run, quant::Student& student, bool calibrated, bool resume);

// The files, and what the report says of them. Nothing in these depends on the clock or on an
// evaluation.
void write_files(const Run& run, const quant::Student& student, QuantizeReport& report);

// Top-1 and top-5 of teacher and of the exported file on real images, if there are any. What is
// shipped is what is measured: the exported file rounds biases to integers, which alone moves a
// prediction in a hundred at few bits.
void evaluate(const Run& run, const quant::Student& student, QuantizeReport& report);
// About how long that will take, from one batch.
double seconds_of_evaluation(const Run& run, const quant::Student& student);

}  // namespace zsq::pipeline
