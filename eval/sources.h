// SPDX-License-Identifier: Apache-2.0
// The kinds of data that open_data() tells apart.
#pragma once
#include <filesystem>
#include <memory>

#include "eval/evaluate.h"

namespace zsq::eval {

// CIFAR binary: records of one (CIFAR-10) or two (CIFAR-100: coarse, fine) label bytes, then 1024
// red, 1024 green and 1024 blue bytes. Error(bad_input): a size that is no multiple of 3073 or
// 3074, a label out of range (names the record).
std::unique_ptr<ImageSource> open_cifar(const std::filesystem::path& file,
                                        const Preprocessing& preprocessing);

// <folder>/<class>/<image>, classes numbered by synsets.txt or by their sorted names.
std::unique_ptr<ImageSource> open_class_folders(const std::filesystem::path& folder,
                                                const Preprocessing& preprocessing);

// Images in <folder>; the ground-truth file has a line "<image> <class>" per image, or "<class>"
// per image in the order of the sorted names; a class is a zero-based index or a synset of
// synsets.txt.
std::unique_ptr<ImageSource> open_flat_folder(const std::filesystem::path& folder,
                                              const std::filesystem::path& ground_truth,
                                              const Preprocessing& preprocessing);

// Images in <folder>, none with a label (kNoLabel). Error(bad_input): there is none.
std::unique_ptr<ImageSource> open_unlabelled_folder(const std::filesystem::path& folder,
                                                    const Preprocessing& preprocessing);

// <folder>/JPEGImages/<name>.jpg (or another kind of image) of each <folder>/SegmentationClass/
// <name>.png, as Pascal VOC has them: a PNG whose pixels are class indices (into a palette or
// grey). The mask is cropped and resized with its image, by nearest; what lies outside the image
// has kVoidLabel. Error(bad_input): no mask, no image of a mask, another PNG.
std::unique_ptr<ImageSource> open_masks(const std::filesystem::path& folder,
                                        const Preprocessing& preprocessing);

// images: f32 [N, C, H, W], preprocessed; labels: integers [N], masks [N, H, W], or missing
// (kNoLabel).
std::unique_ptr<ImageSource> open_npz(const std::filesystem::path& file);

}  // namespace zsq::eval
