// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::pipeline {

// What the teacher gives for held-out images [N, C, H, W], f32 [N, classes], on their device. Of up
// to 4 MB in one process it is kept in cache_folder() for the next run, under a name made of the
// bytes of the images, `sha256` of the teacher's file, the version of zsq, the instruction set and
// the threads. What is found there counts if the first image still gives it.
at::Tensor teacher_outputs(const models::Model& teacher, const std::string& sha256,
                           const at::Tensor& images);

}  // namespace zsq::pipeline
