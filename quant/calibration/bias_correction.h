// SPDX-License-Identifier: Apache-2.0
// Takes the mean error that quantization makes out of a student's biases (arXiv 1906.04721, section
// 4.2, which has the error of the weights): for a layer with weights W and input x, in the student
// W^ and x^, the output's mean is off by
//   W^ E[x^] - W E[x]
// E[x] is what BatchNorm statistics imply (quant/data_free/moments.h), and x^ = Q(x) with the grids
// of the quantizers between; before calibrate() they pass x on, and the error of the weights
// remains. At the border of a map, where padding takes part, means differ from place to place, and
// the average over the output's places counts. The shift is subtracted from the beta of the
// BatchNorm that follows the layer (times gamma / sqrt(v + eps)), or from the layer's bias, which
// it gets if it has none.
#pragma once
#include "quant/student.h"

namespace zsq::quant {

// `teacher` is the network that the student was made of. Always from the teacher's biases: to be
// called again when grids have changed.
void correct_bias(Student& student, const models::Model& teacher);

// f32 [1, ...], the shape of the input for one image.
struct LayerInput {
  at::Tensor mean, variance;  // of x
  at::Tensor quantized_mean;  // of x^
};

// What BatchNorm statistics imply for the inputs of all weight_sites(student).
std::vector<LayerInput> infer_layer_inputs(const Student& student, const models::Model& teacher);

// Mean over the images and places of what a layer reads or writes, per channel: [C]. A linear layer
// has its channels last, whatever the tensor that it acts on.
at::Tensor channel_means(const models::Node& layer, const at::Tensor& x);

// All layers.
void correct_bias(Student& student, const models::Model& teacher,
                  const std::vector<LayerInput>& inputs);

// One layer.
void correct_bias(Student& student, const models::Model& teacher, const WeightSite& site,
                  const LayerInput& input);

// Gives a parameter (bias, beta, gamma) of the student's node a value; one that nodes of the
// teacher share, or that it lacks, becomes the node's own.
void set_own(Student& student, const models::Model& teacher, models::NodeId id,
             const std::string& role, const at::Tensor& value);

// Makes the student's layers name the parameters that set_own() has given them, if the store
// holds such: for a student that is built anew and takes the parameters of an earlier one.
void adopt_corrected_biases(Student& student);

}  // namespace zsq::quant
