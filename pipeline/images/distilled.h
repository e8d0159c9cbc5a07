// SPDX-License-Identifier: Apache-2.0
// Images of a network made without a generator, so that what is measured on them can be compared
// between runs: optimised one by one against the teacher (train/images/make_images.h), then each
// with a square of half its area, at a random place, from the next one (CutMix, arXiv 1905.04899),
// and kept for the next time. Of an optimised image a teacher is all but certain, and what moves
// its logits hardly moves its answer; on the mixed ones answers lie between classes, where
// quantization changes them.
#pragma once
#include <filesystem>
#include <string>

#include "core/observer.h"
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

// `n` images, each made of two of `images` that way: n / N rounds, each with another partner and
// other places. f32 [n, C, H, W]; `images` themselves where there is only one.
at::Tensor mixed_images(const at::Tensor& images, std::int64_t n, std::uint64_t seed);

// The images of a bank, f32 [N, C, H, W] on the teacher's device, the first `most` of them.
at::Tensor bank_images(const std::filesystem::path& bank, const models::Model& teacher,
                       std::int64_t most);

// $ZSQ_CACHE, else $XDG_CACHE_HOME/zsq, else $HOME/.cache/zsq; empty if none is set.
std::filesystem::path cache_folder();

}  // namespace zsq::pipeline
