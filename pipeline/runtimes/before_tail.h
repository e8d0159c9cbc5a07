// SPDX-License-Identifier: Apache-2.0
// Files that end in operators which only runtimes compute (models/tail.h): what comes before these
// can be compared.
#pragma once
#include <filesystem>

#include "models/graph.h"

namespace zsq::pipeline {

// Writes the ONNX file `from`, of which `network` was read, without the nodes of the network's
// tail: its outputs are what these read. Error(bad_input) if the file has no such tensor.
void write_without_tail(const models::Model& network, const std::filesystem::path& from,
                        const std::filesystem::path& to);

}  // namespace zsq::pipeline
