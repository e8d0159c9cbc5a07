// SPDX-License-Identifier: Apache-2.0
// Boxes of images as COCO stores them: a JSON object with the lists "images" (id, file_name,
// width, height), "annotations" (image_id, category_id, bbox [left, top, width, height] in pixels,
// area, iscrowd) and "categories" (id, name); cocodataset.org, "Data format". What else it holds,
// such as outlines and key points, is skipped.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "eval/box_measures.h"
#include "eval/preprocessing_options.h"

namespace zsq::eval {

struct CocoImage {
  std::int64_t id = 0;
  std::string file;  // below the folder of the images
  ImageSize size;    // 0 where the file does not say
  std::vector<TrueBox> boxes;
};

struct CocoCategory {
  std::int64_t id = 0;
  std::string name;
};

struct CocoFile {
  std::string path;
  std::vector<CocoImage> images;         // by id
  std::vector<CocoCategory> categories;  // as listed; TrueBox::category is an index
};

// An annotation without `area` has that of its box, one without `iscrowd` is none; width or height
// may be 0. Error(bad_input) names the file, the entry and what was expected: no JSON, more than
// formats/limits.h allows, no box at all, a box of negative size, an id that is unknown or there
// twice, a file name that leads out of the folder.
CocoFile read_coco(const std::filesystem::path& path);

}  // namespace zsq::eval
