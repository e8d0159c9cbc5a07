// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/observer.h"
#include "quant/student.h"
#include "train/reconstruct_options.h"

namespace zsq::pipeline {

// How many views of each of so many images block reconstruction should have:
// reconstruct.augmentations_per_image, or as many as reconstruct.memory holds the values of, at
// least one. The observer is told of fewer.
std::int64_t affordable_views(const models::Model& teacher, const quant::Student& student,
                              const ReconstructOptions& options, std::int64_t images,
                              Observer& observer);

}  // namespace zsq::pipeline
