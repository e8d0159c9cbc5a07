// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "exporters/ncnn/net.h"
#include "exporters/plan.h"

namespace zsq::exporters::ncnn {

// The student in ncnn's layers: a blob [C, H, W] for the image and one for the output, with the
// names and the last function of models::Signature. Layers in int8 hold its codes and quantize
// their inputs themselves; everything else is float, with a division, a rounding and a product
// where an operator in float reads a quantized tensor. RefusedByTarget if ncnn would compute
// another thing.
Net student_net(const quant::Student& student, const Plan& plan);

}  // namespace zsq::exporters::ncnn
