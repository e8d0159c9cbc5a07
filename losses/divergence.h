// SPDX-License-Identifier: Apache-2.0
// How far a student's outputs are from its teacher's, for each kind of output
// (models::OutputKind). Every loss, measure and choice that compares outputs asks here, so that a
// network is judged by what its outputs mean.
//
// Outputs are f32 [N, ...]; what comes after N counts as one row of K outputs. Logits are those of
// a softmax, scores those of sigmoids (what enters the function), one row of each.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "models/outputs.h"

namespace zsq::losses {

using models::OutputKind, models::OutputRow;

// "logits", "scores", "values", "map": as report.json and the setting model.output have them;
// "score_map" of scores with places, "several" of more than one output.
std::string_view name_of(const OutputRow& row);

// logits  cuda_kernels::kl_divergence: tau^2 sum_n KL(softmax(t / tau) || softmax(s / tau)) /
//         divisor, nats
// scores  tau^2 sum_n sum_k [p log(p / q) + (1 - p) log((1 - p) / (1 - q))] / divisor, p =
//         sigmoid(t / tau), q = sigmoid(s / tau): Bernoulli KL of each label, nats
// values  N (sum |s - t|^2 / sum |t - mean_n t|^2) / divisor: the squared error relative to what
//         the teacher's values vary by over the images. Of one image, or where they do not vary
//         (by less than 1e-6 of their mean square), relative to sum |t|^2. tau has no part.
// map     KL as of logits, the mean over the places
// Of scores with places the mean over all of them, not the sum. Of several outputs the sum over the
// outputs, each in its own unit.
// Gradient to the student alone -> scalar. With divisor N all are means over images.
at::Tensor divergence(const OutputRow& row, const at::Tensor& student, const at::Tensor& teacher,
                      double tau, double divisor);

// Mean over the images, f64 scalar, 1 where all is alike:
// logits  1 where the largest is the same, else 0
// scores  of one label: 1 where both are on the same side of 0.5, else 0. Of several: the F1 of
//         the sets of labels above 0.5, 2 |A and B| / (|A| + |B|), so that labels that are off in
//         both do not count; where no label is above 0.5 in either, 1 if the largest is the same,
//         else 0
// values  of two and more: cosine similarity, at least 0. Of one: 1 - sum |s - t| / sum |t - mean
//         t|, at least 0, with sum |t| below for one image or where they do not vary
// map     the share of the places at which the largest is the same
// With places, scores: 1 - sum (p - q)^2 / sum (p^2 + q^2), p and q as above; values: the cosine
// similarity of what both differ by from the teacher's mean over the images (of one image, or where
// they do not vary, from its mean over the places). Of several outputs the lowest.
at::Tensor agreement(const OutputRow& row, const at::Tensor& student, const at::Tensor& teacher);

// Divergence at temperature 1, mean over the images, and agreement of each output of a row.
struct OutputMeasure {
  std::string name, kind;    // kind: name_of() it
  std::int64_t numbers = 0;  // per image
  double divergence = 0, agreement = 0;
};
std::vector<OutputMeasure> measures_of_outputs(const OutputRow& row, const at::Tensor& student,
                                               const at::Tensor& teacher);

// The share of images of which the teacher decides what it decides most often: the largest output,
// or the side of one score. 0 of values, and of scores with places, unless they do not vary:
// then 1. Of a map the share of the places; of several outputs the least. At a share near 1 the
// images cannot tell students apart by their decisions.
double most_frequent_share(const OutputRow& row, const at::Tensor& teacher);

// Cross-entropy to soft targets, mean over the batch, nats -> scalar:
// logits  -sum_c target_nc log softmax(logits)_nc
// scores  -sum_k target_nk log sigmoid(logits)_nk: a label that an image is made for is driven up,
//         the others are left alone. Of one label 0: all images would be driven the same way
// values and outputs with places  0
at::Tensor cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& targets);

// losses::easy_cross_entropy; of scores with p_n and what is learned by the sigmoid of the label,
// of values 0.
at::Tensor easy_cross_entropy(OutputKind kind, const at::Tensor& student, const at::Tensor& teacher,
                              const at::Tensor& targets, double difficulty);

// losses::hard_sample_cross_entropy with p_n the probability of the label: by softmax (logits), by
// its sigmoid (scores; of one score label 1 is on and label 0 off). 0 for values.
at::Tensor label_cross_entropy(OutputKind kind, const at::Tensor& logits, const at::Tensor& labels,
                               double focal_gamma);

// Whether the row is logits or scores alone, which decide on labels of the whole image.
bool has_decisions(OutputKind kind);

// Outputs of which the largest is the decision, [N, C], to be held against labels of images: one
// score z becomes (0, z), so that class 1 is "on". Values and outputs with places have no such
// decision: Error(usage) says so.
at::Tensor class_logits(OutputKind kind, const at::Tensor& outputs);

// How many labels images are made for: K, of one score 2 (off and on), of several outputs 1.
std::int64_t label_count(OutputKind kind, std::int64_t outputs);
// What the teacher sees, int64 [N]: the largest; of one score 1 where it is above 0.5.
at::Tensor predicted_labels(OutputKind kind, const at::Tensor& logits);
// bool [N]: whether the teacher sees the label: it is the largest (logits, values), or above 0.5.
at::Tensor sees_label(OutputKind kind, const at::Tensor& logits, const at::Tensor& labels);

// The teacher's probabilities for images that were made for no class, f32 [N, K]: softmax, sigmoid;
// 0 for values.
at::Tensor soft_targets(OutputKind kind, const at::Tensor& logits);

// A scalar whose squared gradient at any value inside of the network is, in the mean over draws,
// twice what noise there adds to divergence(.., tau 1, divisor 1), summed over the images (Fisher
// information): log p of a class or of labels drawn from the network's own prediction; of values
// sqrt(2 / variance) sum e t, e drawn from N(0, 1). Draws are made on the CPU.
at::Tensor drawn_log_likelihood(const OutputRow& row, const at::Tensor& outputs,
                                const at::Generator& draws);

}  // namespace zsq::losses
