// SPDX-License-Identifier: Apache-2.0
// A .tflite file for LiteRT, by its 8-bit quantization specification: activations int8 per tensor
// with a zero point, weights int8 with zero point 0 and a scale per output channel (dimension 0; of
// a depthwise convolution 3), biases int32 on the scale of the products. Input f32
// [N, H, W, C], channels last; output f32; names and last function of models::Signature; QUANTIZE
// and DEQUANTIZE are in the file. What LiteRT's int8 operators would round twice, or not exactly as
// the student, is computed in float between them. The run's metadata are entries of the file's
// metadata.
#pragma once
#include "exporters/registry.h"

namespace zsq::exporters {

ExportReport export_tflite(const quant::Student& student, const std::filesystem::path& path,
                           const Metadata& metadata, const ExportOptions& options = {});

}  // namespace zsq::exporters
