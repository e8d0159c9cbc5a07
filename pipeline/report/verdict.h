// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "pipeline/results.h"

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

// The largest share of one decision at which images still tell students apart. Dead leaves are of
// no class: 0.95. Optimised ones are made for all classes alike, a share of 1 / outputs each;
// halfway from there to all is too much.
double can_tell_apart(const std::string& images, const std::string& kind, std::int64_t outputs);

struct RealResult {
  Accuracy teacher, student;
  double agreement = 1;  // share of the images that both decide alike
};

// The same of accuracies on real images, which need no such relation: points of top-1 lost. Nothing
// is said where the teacher itself is hardly better than chance, nor of a loss below a point on
// fewer than 100 images; and who agrees with the teacher less than good students do is not called
// good, however many labels it happens to meet.
std::string verdict_on_real(const RealResult& real, const std::string& kind = "logits",
                            std::int64_t outputs = 10);

// The sentence of a run: on real images if there were any, else on synthetic ones, if their pixels
// are those of the network's training. Where only the user says that they are, a good verdict holds
// on this condition. What is good, but not on x86 processors without VNNI (report.saturation), is
// judged by what these compute.
std::string verdict_of(const QuantizeReport& report);

// How a page shows a sentence (pipeline/report/page.h): "good", "fair" or "bad". Of real images
// less than 1 point lost is good, less than 5 fair.
std::string mood_of(const std::string& verdict);

}  // namespace zsq::pipeline
