// SPDX-License-Identifier: Apache-2.0
// Images of a network made without a generator, so that what is measured on them can be compared
// between runs: optimised one by one against the teacher (train/images/make_images.h), and kept for
// the next time.
#pragma once
#include <filesystem>
#include <string>

#include "core/observer.h"
#include "formats/safetensors.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

struct DistilledSet {
  std::string purpose;  // sets of two purposes have no image in common
  std::int64_t images = 0;
};

// f32 [N, C, H, W] on the teacher's device, optimised by recipe.images. `sha256` is of the
// teacher's file; it, the settings and the set name the file in cache_folder(). A file that is
// damaged is made again; one that cannot be written is a warning.
at::Tensor distilled_images(const models::Model& teacher, const std::string& sha256,
                            const Recipe& recipe, const DistilledSet& set, Observer& observer);

// The images of a bank, f32 [N, C, H, W] on the teacher's device, the first `most` of them.
at::Tensor bank_images(const std::filesystem::path& bank, const models::Model& teacher,
                       std::int64_t most);

// $ZSQ_CACHE, else $XDG_CACHE_HOME/zsq, else $HOME/.cache/zsq; empty if none is set.
std::filesystem::path cache_folder();

// Writes a file of that folder, which is made where it is missing; why it cannot be written, else
// empty.
std::string write_to_cache(const std::filesystem::path& file,
                           const formats::SafetensorsFile& contents);

}  // namespace zsq::pipeline
