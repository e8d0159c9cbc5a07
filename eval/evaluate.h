// SPDX-License-Identifier: Apache-2.0
// Top-1 and top-5 on real images.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/observer.h"
#include "eval/label_measures.h"
#include "eval/options.h"
#include "eval/preprocessing.h"

namespace zsq::eval {

struct Batch {
  at::Tensor images;  // f32 [N, 3, H, W], preprocessed
  at::Tensor labels;  // int64 [N]; bool [N, L] where an image has several
};

// Images may be loaded by several threads at a time.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::int64_t size() const = 0;
  virtual Batch load(std::int64_t begin, std::int64_t count) const = 0;
};

// One image file, f32 [1, 3, H, W].
at::Tensor load_image(const std::filesystem::path& path, const Preprocessing& preprocessing);

// CIFAR-10/100 binary (a file, or a folder that holds test_batch.bin / test.bin), ImageFolder
// (label = index in synsets.txt if there is one, in the folder or its parent, else of the sorted
// folder names), a flat folder with a ground-truth file, npz with images (f32 NCHW, preprocessed)
// and labels, integers [N] or 0 and 1 [N, L]. Error(bad_input) says what was looked for.
std::unique_ptr<ImageSource> open_data(const std::string& path, const Preprocessing& preprocessing);

// data.eval_data by the preprocessing of `options`, whose size is given where images have to be
// decoded (npz needs no preprocessing); through data.eval_cache if that is set and the images
// are encoded (see eval/image_cache.h). What the cache does, the observer is told.
std::unique_ptr<ImageSource> open_data(const DataOptions& options, Observer& observer);

// Files that are decoded whenever they are asked for: not CIFAR's records, an npz or a cache.
bool holds_encoded_images(const ImageSource& source);

// data.eval_images, as far as there are so many.
std::int64_t images_to_use(const ImageSource& source, const DataOptions& options);

struct Result {
  std::int64_t images = 0;
  double top1 = 0, top5 = 0;  // per cent
  double seconds = 0;
  at::Tensor predictions;  // int64 [images], the arg-max of each image
  at::Tensor labels;       // int64 [images]
  // Where images have several labels each; then there are no top1, top5, predictions and labels.
  std::optional<LabelMeasures> of_labels;
};

// The next images are loaded while `logits_of` runs, which this thread calls (see eval/loader.h).
// It gets images on `device` and, so that a GPU is not idle until the next ones lie there, waits
// for nothing (see eval/device_batches.h). Its outputs are those of classes, or one for each of
// several labels, what enters the sigmoid.
Result evaluate(const std::function<at::Tensor(const at::Tensor&)>& logits_of,
                const ImageSource& source, const DataOptions& options, Observer& observer,
                c10::Device device = at::kCPU);

}  // namespace zsq::eval
