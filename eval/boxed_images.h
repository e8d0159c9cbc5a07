// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "eval/coco_file.h"
#include "eval/evaluate.h"

namespace zsq::eval {

// The images of a COCO file, in the order of their ids. Labels f64 [N, 7]: which image it is,
// left, top, width and height of the part that the network sees (shown_part()), and the width and
// height of the image.
class BoxedImages : public ImageSource {
 public:
  // Error(bad_input): no image in the file, images that the folder lacks. load(): Error(bad_input)
  // of an image that is not as large as the file says.
  BoxedImages(CocoFile file, const std::filesystem::path& folder,
              const Preprocessing& preprocessing);

  std::int64_t size() const override { return std::ssize(file_.images); }
  Batch load(std::int64_t begin, std::int64_t count) const override;

  const CocoFile& file() const { return file_; }

 private:
  CocoFile file_;
  std::filesystem::path folder_;
  Preprocessing preprocessing_;
};

}  // namespace zsq::eval
