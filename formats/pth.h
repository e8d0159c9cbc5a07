// SPDX-License-Identifier: Apache-2.0
// PyTorch checkpoints (.pth, .pt, .th, .pth.tar) in the zip layout (torch >= 1.6) and the legacy
// layout, through a restricted unpickler that imports nothing and calls nothing.
#pragma once
#include <filesystem>

#include "formats/array.h"

namespace zsq::formats {

// The state dict: the top-level mapping where most values are tensors, else under state_dict,
// model_state_dict, model, net or an ema variant, or walked out of a pickled module. "module."
// prefixes are stripped. Strided views are made dense. A pickle that names anything but tensors and
// plain containers is read as opaque objects; one that would have to run something (os.system) is
// refused with Error(bad_input) that names it.
NamedArrays read_pth(const std::filesystem::path& path);

}  // namespace zsq::formats
