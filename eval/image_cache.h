// SPDX-License-Identifier: Apache-2.0
// Decoding and resizing cost more than a small network does; their result can be kept.
#pragma once
#include <memory>

#include "core/observer.h"
#include "eval/image_files.h"
#include "eval/options.h"

namespace zsq::eval {

// The first data.eval_images images of `source`, which was opened from data.eval_data, from one
// file in the folder data.eval_cache: pixels u8 [N, H, W, 3] as they are before normalizing,
// so results are the same bit for bit, and the SHA-256 of each image's pixels; safetensors. Labels
// are not kept. Where there is no such file, or the images (paths, sizes, times of change), the
// preprocessing or the decoder are others than those it was made from, it is made again, with a
// line to the observer; it appears whole or not at all. Error(bad_input): a damaged file, which
// this never overwrites, and what decoding throws; Error(stopped) if the observer asks for it.
std::unique_ptr<ImageSource> cached(const ImageFiles& source, const DataOptions& options,
                                    Observer& observer);

}  // namespace zsq::eval
