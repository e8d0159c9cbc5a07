// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "pipeline/quantize.h"

namespace zsq::pipeline {

// What the divergence on held-out synthetic images (pool() in pipeline/images/held_out.h) says
// about a student's accuracy, in one sentence; empty without images. The relation and its spread
// are measured in docs/results.md.
std::string verdict_on(const std::vector<SyntheticResult>& synthetic);

// The same of accuracies on real images, which need no such relation: points of top-1 lost.
std::string verdict_on(const Accuracy& teacher, const Accuracy& student);

// How a page shows the first kind of sentence (pipeline/report/page.h): "good", "fair" or "bad".
std::string mood_of(const std::string& verdict);

}  // namespace zsq::pipeline
