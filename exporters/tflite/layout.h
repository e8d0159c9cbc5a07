// SPDX-License-Identifier: Apache-2.0
// Order of dimensions. LiteRT's operators on maps want channels last: a tensor [N, C, H, W] of the
// student is stored as [N, H, W, C], and one of more dimensions, [N, A, B, H, W], as
// [N, H, W, A, B], so that splitting and joining channels is a reshape there too. Tensors of up to
// three dimensions are stored as they are.
#pragma once
#include "exporters/tflite/builder.h"

namespace zsq::exporters::tflite {

// Entry d: which dimension of the student's tensor is stored as dimension d.
Sizes stored_order(std::size_t rank);

// Where the student's dimension `axis` (negative: from the end) is stored.
std::int64_t stored_axis(std::int64_t axis, std::size_t rank);

Sizes stored_shape(const Sizes& shape);

// A tensor in the student's order, and back; x itself where both are the same.
TensorId to_student_order(Builder& builder, TensorId x, const std::string& name);
TensorId to_stored_order(Builder& builder, TensorId x, const std::string& name);

TensorId transpose(Builder& builder, TensorId x, const Sizes& perm, const std::string& name);
// A leading dimension of 1 stays open, as it is the batch.
TensorId reshape(Builder& builder, TensorId x, const Sizes& shape, const std::string& name);

}  // namespace zsq::exporters::tflite
