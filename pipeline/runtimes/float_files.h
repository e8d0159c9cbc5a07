// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "core/observer.h"
#include "models/graph.h"

namespace zsq::pipeline {

// The float network as a file that a runtime reads: its own file if that is ONNX and the runtime
// reads ONNX, else one that is written as `base` with the runtime's extension, once. Empty if it
// cannot be written; the observer is told why.
std::filesystem::path float_file(const models::Model& network, const std::string& runtime,
                                 const std::filesystem::path& base, Observer& observer);

}  // namespace zsq::pipeline
