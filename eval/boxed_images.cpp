// SPDX-License-Identifier: Apache-2.0
#include "eval/boxed_images.h"

#include <ATen/ops/empty.h>

#include "core/error.h"
#include "eval/preprocess.h"
#include "formats/atomic_file.h"

namespace zsq::eval {

namespace fs = std::filesystem;

BoxedImages::BoxedImages(CocoFile file, const fs::path& folder, const Preprocessing& preprocessing)
    : file_(std::move(file)), folder_(folder), preprocessing_(preprocessing) {
  if (file_.images.empty()) throw Error(ErrorCode::bad_input, file_.path + " lists no image");
  std::string first;
  std::size_t missing = 0;
  for (const CocoImage& image : file_.images)
    if (!fs::is_regular_file(folder_ / image.file) && missing++ == 0) first = image.file;
  if (missing > 0)
    throw Error(ErrorCode::bad_input,
                folder.string() + " lacks " + std::to_string(missing) + " of the " +
                    std::to_string(file_.images.size()) + " images of " + file_.path +
                    ", the first of them '" + first +
                    "'; expected the folder that their file_name starts from");
}

Batch BoxedImages::load(std::int64_t begin, std::int64_t count) const {
  Batch batch{at::empty({count, preprocessing_.channels(), preprocessing_.size.height,
                         preprocessing_.size.width},
                        at::kFloat),
              at::empty({count, 7}, at::kDouble)};
  auto* label = batch.labels.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    const CocoImage& described = file_.images[static_cast<std::size_t>(begin + i)];
    const std::string path = (folder_ / described.file).string();
    const Image image = decode_image(formats::read_file(path), path, preprocessing_.decoder);
    const ImageSize size{image.height, image.width}, said = described.size;
    if (said.height != 0 && !(said == size))
      throw Error(ErrorCode::bad_input,
                  path + " has " + std::to_string(size.height) + " x " +
                      std::to_string(size.width) + " pixels (height x width), and " + file_.path +
                      " says " + std::to_string(said.height) + " x " + std::to_string(said.width) +
                      ": its boxes are of another image, or of one that is turned by its EXIF "
                      "orientation (data.decoder=opencv_exif)");
    normalize(fit(image, preprocessing_, path).pixels, preprocessing_,
              batch.images.data_ptr<float>() + i * batch.images.stride(0));
    const Box part = shown_part(size, preprocessing_);
    for (const double value :
         {static_cast<double>(begin + i), part.left, part.top, part.width, part.height,
          static_cast<double>(size.width), static_cast<double>(size.height)})
      *label++ = value;
  }
  return batch;
}

}  // namespace zsq::eval
