// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/error.h"
#include "eval/preprocess.h"
#include "eval/sources.h"
#include "formats/atomic_file.h"

namespace zsq::eval {
namespace {

constexpr std::int64_t kSide = 32, kPlane = kSide * kSide;

class Cifar : public ImageSource {
 public:
  Cifar(const std::filesystem::path& file, const Preprocessing& preprocessing)
      : name_(file.string()), preprocessing_(preprocessing), bytes_(formats::read_file(file)) {
    const auto length = static_cast<std::int64_t>(bytes_.size());
    label_bytes_ = length % record(1) == 0 ? 1 : 2;
    if (length == 0 || length % record(label_bytes_) != 0)
      throw Error(
          ErrorCode::bad_input,
          name_ + " has " + std::to_string(length) +
              " bytes, no multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100); download it anew");
    size_ = length / record(label_bytes_);
    const std::int64_t classes = label_bytes_ == 1 ? 10 : 100;
    for (std::int64_t i = 0; i < size_; ++i)
      if (label(i) >= classes)
        throw Error(ErrorCode::bad_input, name_ + ": record " + std::to_string(i) + " has label " +
                                              std::to_string(label(i)) + ", expected 0 to " +
                                              std::to_string(classes - 1));
  }

  std::int64_t size() const override { return size_; }

  Batch load(std::int64_t begin, std::int64_t count) const override {
    Batch batch{at::empty({count, preprocessing_.channels(), preprocessing_.size.height,
                           preprocessing_.size.width},
                          at::kFloat),
                at::empty({count}, at::kLong)};
    for (std::int64_t i = 0; i < count; ++i) {
      batch.images[i].copy_(preprocess(image(begin + i), preprocessing_, name_));
      batch.labels.data_ptr<std::int64_t>()[i] = label(begin + i);
    }
    return batch;
  }

 private:
  static std::int64_t record(std::int64_t label_bytes) { return label_bytes + 3 * kPlane; }
  const std::byte* at(std::int64_t i) const { return bytes_.data() + i * record(label_bytes_); }
  std::int64_t label(std::int64_t i) const {
    return std::to_integer<std::int64_t>(at(i)[label_bytes_ - 1]);
  }

  Image image(std::int64_t i) const {
    Image image{kSide, kSide, std::vector<std::uint8_t>(3 * kPlane)};
    const std::byte* planes = at(i) + label_bytes_;
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t p = 0; p < kPlane; ++p)
        image.pixels[static_cast<std::size_t>(3 * p + c)] =
            std::to_integer<std::uint8_t>(planes[c * kPlane + p]);
    return image;
  }

  std::string name_;
  Preprocessing preprocessing_;
  std::vector<std::byte> bytes_;
  std::int64_t label_bytes_ = 1, size_ = 0;
};

}  // namespace

std::unique_ptr<ImageSource> open_cifar(const std::filesystem::path& file,
                                        const Preprocessing& preprocessing) {
  return std::make_unique<Cifar>(file, preprocessing);
}

}  // namespace zsq::eval
