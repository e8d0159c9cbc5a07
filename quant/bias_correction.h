// SPDX-License-Identifier: Apache-2.0
// Takes the mean error that quantized weights make out of a student's biases (arXiv 1906.04721,
// section 4.2): with e = quantized weight - teacher's weight, a layer's output is off by e * x, on
// average by e * E[x]. E[x] is what BatchNorm statistics tell (quant/moments.h); at the border of a
// map, where padding takes part, it differs from place to place, and the average over the output's
// places counts. The shift is subtracted from the beta of the BatchNorm behind the layer (times
// gamma / sqrt(v + eps)), or from the layer's bias, which it gets if it has none.
#pragma once
#include "quant/moments.h"
#include "quant/student.h"

namespace zsq::quant {

// `teacher` is the network that the student was made of.
void correct_bias(Student& student, const models::Model& teacher);

// One layer, whose input has these means [1, ...]; from the teacher's bias, whatever the student
// had.
void correct_bias(Student& student, const models::Model& teacher, const WeightSite& site,
                  const at::Tensor& mean);

// What BatchNorm statistics tell of the inputs of all weight_sites(student).
std::vector<Moments> layer_input_moments(const Student& student, const models::Model& teacher);

// Makes the student's layers name the parameters that correct_bias() has given them, if the store
// holds such: for a student that is built anew and takes the parameters of an earlier one.
void adopt_corrected_biases(Student& student);

}  // namespace zsq::quant
