// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>

#include "core/error.h"
#include "eval/sources.h"
#include "formats/npy.h"
#include "models/load.h"

namespace zsq::eval {
namespace {

class Npz : public ImageSource {
 public:
  explicit Npz(const std::filesystem::path& file) {
    const formats::NamedArrays arrays = formats::read_npz(file);
    images_ = tensor(file, arrays, "images");
    labels_ = formats::find(arrays, "labels") ? tensor(file, arrays, "labels")
                                              : at::full({images_.size(0)}, kNoLabel, at::kLong);
    if (images_.dim() != 4 || images_.scalar_type() != at::kFloat)
      refuse(file, "'images' has to be f32 [N, C, H, W], preprocessed");
    const auto dimensions = labels_.dim();
    const bool several = dimensions == 2 && labels_.size(1) > 0;
    if ((dimensions != 1 && dimensions != 3 && !several) || labels_.size(0) != images_.size(0))
      refuse(file,
             "'labels' has to hold one integer per image, 0 or 1 for each label [N, L], or masks "
             "[N, H, W]");
    if (!several && !at::isIntegralType(labels_.scalar_type(), /*includeBool=*/false))
      refuse(file, "'labels' has to hold one integer per image or pixel");
    if (several && !labels_.eq(0).logical_or(labels_.eq(1)).all().item<bool>())
      refuse(file, "'labels' of shape [N, L] has to hold 0 or 1 for each label of an image");
    if (several && labels_.size(1) > 1)
      labels_ = labels_.eq(1);
    else
      labels_ = several ? labels_.to(at::kLong).flatten() : labels_.to(at::kLong);
  }

  std::int64_t size() const override { return images_.size(0); }

  Batch load(std::int64_t begin, std::int64_t count) const override {
    return {images_.narrow(0, begin, count), labels_.narrow(0, begin, count)};
  }

 private:
  [[noreturn]] static void refuse(const std::filesystem::path& file, const std::string& why) {
    throw Error(ErrorCode::bad_input, file.string() + ": " + why);
  }

  static at::Tensor tensor(const std::filesystem::path& file, const formats::NamedArrays& arrays,
                           const std::string& name) {
    const formats::Array* array = formats::find(arrays, name);
    if (!array)
      refuse(file,
             "has no array '" + name + "'; expected 'images' and, if there are any, 'labels'");
    return models::to_tensor(*array);
  }

  at::Tensor images_, labels_;
};

}  // namespace

std::unique_ptr<ImageSource> open_npz(const std::filesystem::path& file) {
  return std::make_unique<Npz>(file);
}

}  // namespace zsq::eval
