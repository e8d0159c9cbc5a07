// SPDX-License-Identifier: Apache-2.0
// Programs that PyTorch wrote, as a Model. load() calls these.
#pragma once
#include "formats/exported_program.h"
#include "formats/torchscript.h"
#include "models/load.h"

namespace zsq::models {

// options.image_size counts before the size that the network was traced with.
Model import_torchscript(const formats::TorchScript& file, const LoadOptions& options = {});

Model import_exported_program(const formats::ExportedProgram& file,
                              const LoadOptions& options = {});

}  // namespace zsq::models
