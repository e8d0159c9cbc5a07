// SPDX-License-Identifier: Apache-2.0
// Back from model.safetensors to the student it was written of.
#pragma once
#include "formats/safetensors.h"
#include "quant/student.h"

namespace zsq::exporters {

// `student` has the structure of the one that was written: insert_quantizers() of the same float
// network with the same options. Its parameters become those of the file: latent weights are the
// quantized ones, (code + qmin - zero_point) * scale, of which the codes are the same again.
// Quantizers that the file has no scale for were not calibrated. Error(bad_input) names a tensor
// that is missing or of another shape, and a layer of other bits.
void restore_student(const formats::SafetensorsFile& file, quant::Student& student);

}  // namespace zsq::exporters
