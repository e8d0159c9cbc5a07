// SPDX-License-Identifier: Apache-2.0
// A student as an ONNX graph with Q/DQ nodes: everything but what exporters/qdq_form.h decides.
#pragma once
#include "exporters/plan.h"
#include "exporters/qdq_form.h"
#include "formats/onnx.h"

namespace zsq::exporters {

// RefusedByTarget (exporters/export.h) if the form refuses a layer.
formats::onnx::Model qdq_model(const quant::Student& student, const Plan& plan, const QdqForm& form,
                               const ExportOptions& options);

}  // namespace zsq::exporters
