// SPDX-License-Identifier: Apache-2.0
// Presets: named sets of preprocessing keys, in this program or in a file. No torch, no OpenCV.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "eval/preprocessing_options.h"

namespace zsq::eval {

std::vector<std::string> preset_names();

// The keys of a known preset, or of a file: whatever ends in .json or holds a '/'. `own` is the
// model's input size, which chooses between a timm configuration's crop fractions. The name stays
// in `preset`. Error(usage) names the nearest preset; Error(bad_input) as read_preset_file().
PreprocessingOptions preset(const std::string& name, const ImageSize& own = {});

// Hugging Face's preprocessor_config.json (do_resize, size, crop_pct, do_center_crop, crop_size,
// resample, do_rescale, rescale_factor, rescale_offset, do_normalize, image_mean, image_std,
// include_top, do_flip_channel_order) or a configuration of timm, flat or under "pretrained_cfg"
// (input_size, fixed_input_size, interpolation, crop_pct, crop_mode, mean, std, test_input_size,
// test_crop_pct). What they leave out has the value that these libraries give it. Error(bad_input)
// names file, key, what was found and what was expected: no JSON, a wrong type, a value that no
// preprocessing has, a step that this program does not have (padding).
PreprocessingOptions read_preset_file(const std::filesystem::path& path, const ImageSize& own = {});

}  // namespace zsq::eval
