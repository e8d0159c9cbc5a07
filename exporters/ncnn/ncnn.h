// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "exporters/registry.h"

namespace zsq::exporters {

// ncnn's own files: `path`, which ends in .param, and the same with .bin. Convolutions and linear
// layers are int8 with the student's codes and scales; the rest is float, between which tensors lie
// in float, too. Metadata is not kept: the format has no place for it. RefusedByTarget if ncnn has
// no layer, or other codes. With fp16 and bf16 switched off in ncnn's options the files compute the
// student, but that ncnn rounds halves away from zero.
ExportReport export_ncnn(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata& metadata, const ExportOptions& options = {});

}  // namespace zsq::exporters
