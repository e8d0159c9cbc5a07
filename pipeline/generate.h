// SPDX-License-Identifier: Apache-2.0
// Synthetic images of a trained CNN's classes, for this or any other tool. No data needed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "recipes/recipe.h"

namespace zsq {

struct GenerateOptions {
  Recipe recipe = load_recipe("deploy");  // model, data, generate.images, process
  std::int64_t images = 256;
  std::string form = "png";  // one of image_forms()
};

// png: <class>/<number>.png and synsets.txt, needs the preprocessing. npy: images.npy, labels.npy.
// npz: images.npz, held in memory until it is complete. ort: test_data_set_<number> with input_0.pb
// and the network's answer output_0.pb, batches of one. safetensors: bank.safetensors, for
// generate.bank.
std::vector<std::string> image_forms();

struct GenerateReport {
  std::string model, form, preset, recipe, tool_version, source_sha256;
  std::string preprocessing;  // as JSON, every key; empty if it is not known
  std::string pixels;         // which range they have, and what it is known from or why it is not
  bool pixel_range_known = false;
  std::int64_t seed = 0, images = 0, steps = 0;
  double cross_entropy = 0;          // of the finished images against their labels, in nats
  double batch_norm_statistics = 0;  // distance of batch from running moments, docs/method.md
  double label_agreement = 0;        // share of the images in which the network sees their label;
                                     // of drawn ones that is what the label is
  double seconds = 0;
  std::vector<std::filesystem::path> files;  // files and folders in `output`
};

// Everything appears in `output` at the end or, where that fails or is stopped, nothing. Where the
// preprocessing is known, pixels are held to values that an 8-bit image can have. Errors:
// core/error.h.
GenerateReport generate(const std::filesystem::path& model, const GenerateOptions& options,
                        const std::filesystem::path& output, Observer* observer = nullptr);

std::string to_json(const GenerateReport& report);  // one line

}  // namespace zsq
