// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <vector>

#include "eval/evaluate.h"
#include "eval/image.h"

namespace zsq::eval {

struct LabelledFile {
  std::filesystem::path path;
  std::int64_t label = 0;
};

// Encoded images, each in a file of its own, decoded whenever one is asked for.
class ImageFiles : public ImageSource {
 public:
  ImageFiles(std::vector<LabelledFile> files, const Preprocessing& preprocessing)
      : files_(std::move(files)), preprocessing_(preprocessing) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Batch load(std::int64_t begin, std::int64_t count) const override;

  const LabelledFile& file(std::int64_t i) const { return files_[static_cast<std::size_t>(i)]; }
  const Preprocessing& preprocessing() const { return preprocessing_; }
  Image pixels(std::int64_t i) const;  // decoded, cropped and resized

 private:
  std::vector<LabelledFile> files_;
  Preprocessing preprocessing_;
};

}  // namespace zsq::eval
