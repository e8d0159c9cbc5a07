// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <span>

#include "eval/box_measures.h"
#include "eval/image.h"
#include "eval/preprocessing.h"

namespace zsq::eval {

// Crop and resize to `preprocessing.size`, H x W, with R for resize, f for crop_fraction:
//   resize_then_crop: the shorter side becomes R and the other keeps the aspect ratio, rounded down
//     (torchvision's Resize and CenterCrop; what the crop lacks is black). By f: R = floor(size /
//     f); where H and W differ, the image becomes the smallest one of its aspect ratio that covers
//     floor(H / f) x floor(W / f), rounded to the nearest (timm's ResizeKeepRatio).
//   crop_then_resize: the largest centred H : W part, its sides times f (min(H, W) / R), rounded
//     down, is resized.
//   stretch: to H x W or, with f or R, to floor(H / f) x floor(W / f) or H R / min(H, W) x
//     W R / min(H, W), of which the centre is taken (timm's squash).
//   letterbox: the whole image, as large as fits into H x W with its aspect ratio, its sides
//   rounded
//     to the nearest; the rest, an odd pixel below or to the right, is grey (YOLO's LetterBox). R
//     and f have no part in it.
//   none: Error(bad_input) names `name` where the image has another size.
// Before or after that, the image goes through NV12 where data.chroma_subsampling says so.
Image fit(const Image& image, const Preprocessing& preprocessing, const std::string& name);

// What of an image fit() gives the network, in pixels of the image: x of its input, of W pixels,
// lies at left + x width / W.
Box shown_part(ImageSize image, const Preprocessing& preprocessing);

// An image file, decoded as data.decoder says, then fit().
Image read_image(const std::filesystem::path& path, const Preprocessing& preprocessing);

// Pixels [n, 3] in red, green, blue to planes [channels, n] in the network's order:
// Preprocessing::value. One channel is the luma of Pillow's mode "L",
// (19595 R + 38470 G + 7471 B + 2^15) / 2^16 rounded down. Error(usage) for other numbers than 1
// and 3.
void normalize(std::span<const std::uint8_t> pixels, const Preprocessing& preprocessing,
               float* planes);

// fit(), then normalize(): f32 [channels, H, W].
at::Tensor preprocess(const Image& image, const Preprocessing& preprocessing,
                      const std::string& name);

// The other way: f32 [channels, height, width] as a network takes it, to the nearest pixel values;
// a grey image has three equal ones.
Image to_pixels(const at::Tensor& image, const Preprocessing& preprocessing);

}  // namespace zsq::eval
