// SPDX-License-Identifier: Apache-2.0
// What a training run chooses by the device that it runs on.
#pragma once
#include "train/graph_step.h"
#include "train/trainer.h"

namespace zsq::train {

c10::Device device_of(const TrainJob& job);

// Null on a CPU, which has nothing to launch, and where several ranks have to wait for each other
// within a recording.
GraphStep::MakeGraph graph_maker(const TrainJob& job);

// Times convolutions and lets the step use the fastest, on a GPU where the user has not asked cuDNN
// for the same bits in every run.
void choose_convolutions(const TrainJob& job, Step& step, Observer& observer);

// Iterations after which losses are read (TrainJob::read_every).
std::ptrdiff_t read_every(const TrainJob& job);

}  // namespace zsq::train
