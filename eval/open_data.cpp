// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/error.h"
#include "eval/boxed_images.h"
#include "eval/image_cache.h"
#include "eval/sources.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;

constexpr std::array kGroundTruthNames{"ground_truth.txt", "val.txt", "labels.txt"};

std::unique_ptr<ImageSource> open_folder(const fs::path& folder,
                                         const Preprocessing& preprocessing) {
  for (const char* name : {"test_batch.bin", "test.bin"})
    if (fs::exists(folder / name)) return open_cifar(folder / name, preprocessing);
  for (const char* name : kGroundTruthNames)
    if (fs::exists(folder / name)) return open_flat_folder(folder, folder / name, preprocessing);
  if (fs::is_directory(folder / "SegmentationClass")) return open_masks(folder, preprocessing);
  bool empty = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) return open_class_folders(folder, preprocessing);
    empty = false;
  }
  if (!empty) return open_unlabelled_folder(folder, preprocessing);
  throw Error(
      ErrorCode::bad_input,
      folder.string() +
          " holds no data that can be read; looked for test_batch.bin (CIFAR-10), test.bin "
          "(CIFAR-100), class folders with images, SegmentationClass with masks, images with "
          "ground_truth.txt, val.txt or labels.txt (lines '<image> <zero-based class or "
          "synset>'), and images without labels");
}

}  // namespace

bool holds_encoded_images(const ImageSource& source) {
  return dynamic_cast<const ImageFiles*>(&source) != nullptr;
}

std::unique_ptr<ImageSource> open_data(const std::string& path,
                                       const Preprocessing& preprocessing) {
  if (!fs::exists(path))
    throw Error(ErrorCode::bad_input, "'" + path +
                                          "' does not exist; expected a folder of images, a "
                                          "CIFAR binary file or an npz file");
  if (fs::is_directory(path)) return open_folder(path, preprocessing);
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".npz") return open_npz(path);
  if (extension == ".bin") return open_cifar(path, preprocessing);
  throw Error(ErrorCode::bad_input, "'" + path +
                                        "' is a file that cannot be read as data; expected "
                                        ".bin (CIFAR), .npz (images, labels) or a folder");
}

std::unique_ptr<ImageSource> open_data(const DataOptions& options, Observer& observer) {
  const bool preprocessed = fs::path(options.eval_data).extension() == ".npz";
  if (!options.annotations.empty()) {
    if (!fs::is_directory(options.eval_data))
      throw Error(ErrorCode::bad_input, "'" + options.eval_data +
                                            "' is no folder; expected the one that holds the "
                                            "images of " +
                                            options.annotations);
    return std::make_unique<BoxedImages>(read_coco(options.annotations), options.eval_data,
                                         resolve(options, {}));
  }
  auto source = open_data(options.eval_data, preprocessed ? Preprocessing() : resolve(options, {}));
  if (options.eval_cache.empty()) return source;
  if (const auto* files = dynamic_cast<const ImageFiles*>(source.get()))
    return cached(*files, options, observer);
  observer.on_message(LogLevel::info, "data.eval_cache is not used: " + options.eval_data +
                                          " holds nothing to decode");
  return source;
}

}  // namespace zsq::eval
