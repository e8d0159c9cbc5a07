// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "pipeline/quantize.h"

namespace zsq::pipeline {

// What the measures on held-out synthetic images let expect of a student, in one sentence; empty
// without images. `kind` and `outputs`: report.json's output_kind and outputs. In this order:
// - Where the teacher decides the same of nearly all images (a share above can_tell_apart(), on
//   either kind of images), they cannot tell a good student from a ruined one, and nothing is said.
// - Where networks of this kind and number of outputs were not measured, it says so, with figures.
// - The band of the divergence (pipeline/report/experience.h) says what measured runs lost;
// - but no student is called good that agrees with its teacher less than good ones did, on either
//   kind of images.
std::string verdict_on(const std::vector<SyntheticResult>& synthetic,
                       const std::string& kind = "logits", std::int64_t outputs = 10);

// The largest share of one decision with which images tell students apart. Dead leaves are of no
// class: 0.95. Optimised ones are made for all classes alike, a share of 1 / outputs each; halfway
// from there to all is too much.
double can_tell_apart(const std::string& images, const std::string& kind, std::int64_t outputs);

// The same of accuracies on real images, which need no such relation: points of top-1 lost.
std::string verdict_on(const Accuracy& teacher, const Accuracy& student);

// How a page shows the first kind of sentence (pipeline/report/page.h): "good", "fair" or "bad".
std::string mood_of(const std::string& verdict);

}  // namespace zsq::pipeline
