// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "eval/image_files.h"
#include "eval/image_header.h"
#include "eval/preprocess.h"
#include "eval/sources.h"
#include "formats/atomic_file.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_mask(const fs::path& file, const std::string& why) {
  throw Error(ErrorCode::bad_input, file.string() + ": " + why);
}

Image read_mask(const fs::path& path) {
  const auto bytes = formats::read_file(path);
  if (const auto reason = why_not_decoded(bytes); !reason.empty())
    refuse_mask(path, "cannot decode: " + reason);
  auto mask = decode_png_indices(bytes);
  if (!mask)
    refuse_mask(path,
                "is no mask that can be read; expected a PNG with a palette or grey, of up to 8 "
                "bits, whose pixels are class indices");
  return std::move(*mask);
}

class MaskedImages : public ImageSource {
 public:
  MaskedImages(std::vector<LabelledFile> images, std::vector<fs::path> masks,
               const Preprocessing& preprocessing)
      : images_(std::move(images), preprocessing),
        masks_(std::move(masks)),
        of_masks_(preprocessing) {
    of_masks_.interpolation = Interpolation::nearest;
    of_masks_.resizer = Resizer::pillow;
    of_masks_.chroma_subsampling = ChromaSubsampling::none;
    of_masks_.letterbox_grey = 0;
  }

  std::int64_t size() const override { return images_.size(); }

  Batch load(std::int64_t begin, std::int64_t count) const override {
    Batch batch = images_.load(begin, count);
    batch.labels = at::empty({count, of_masks_.size.height, of_masks_.size.width}, at::kLong);
    auto* label = batch.labels.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const fs::path& path = masks_[static_cast<std::size_t>(i)];
      const Image mask = fit(read_mask(path), of_masks_, path.string());
      for (std::size_t at = 0; at < mask.pixels.size(); at += 3)
        *label++ = mask.pixels[at + 1] == 0 ? kVoidLabel : mask.pixels[at];
    }
    return batch;
  }

 private:
  ImageFiles images_;
  std::vector<fs::path> masks_;
  Preprocessing of_masks_;
};

}  // namespace

std::unique_ptr<ImageSource> open_masks(const fs::path& folder,
                                        const Preprocessing& preprocessing) {
  const fs::path images = folder / "JPEGImages", masks = folder / "SegmentationClass";
  std::map<std::string, fs::path> image_of;
  if (fs::is_directory(images))
    for (const auto& entry : fs::directory_iterator(images))
      image_of[entry.path().stem().string()] = entry.path();
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(masks))
    if (entry.path().extension() == ".png") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  if (found.empty()) refuse_mask(masks, "holds no mask (.png)");
  std::vector<LabelledFile> files;
  for (const fs::path& mask : found) {
    const auto image = image_of.find(mask.stem().string());
    if (image == image_of.end())
      refuse_mask(mask, "has no image of that name in " + images.string());
    files.push_back({image->second, kNoLabel});
  }
  return std::make_unique<MaskedImages>(std::move(files), std::move(found), preprocessing);
}

}  // namespace zsq::eval
