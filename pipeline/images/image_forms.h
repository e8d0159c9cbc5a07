// SPDX-License-Identifier: Apache-2.0
// The forms in which made images are stored. A new one: a class, a row of the table, a line of
// docs.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/preprocessing.h"
#include "train/images/make_images.h"

namespace zsq::pipeline {

// What is known before the first image.
struct ImageSet {
  std::vector<std::int64_t> shape;  // N, C, H, W
  std::int64_t classes = 0;
  std::optional<eval::Preprocessing> preprocessing;  // png needs it
  std::map<std::string, std::string> metadata;
};

class ImageWriter {
 public:
  virtual ~ImageWriter() = default;
  virtual void add(const train::MadeImages& made) = 0;  // in order, N images in all
  virtual void finish() = 0;
};

std::vector<std::string> image_form_names();

// Error(usage): an unknown form names the nearest; `taken` holds images of this form already.
void require_image_form(const std::string& form, const std::filesystem::path& taken);

// Writes into `folder`, which outlives the writer.
std::unique_ptr<ImageWriter> open_image_writer(const std::string& form,
                                               const std::filesystem::path& folder,
                                               const ImageSet& set);

}  // namespace zsq::pipeline
