// SPDX-License-Identifier: Apache-2.0
// Real images with labels, and what is counted on them: top-1 and top-5 of classes, pixels of maps.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/observer.h"
#include "eval/options.h"
#include "eval/preprocessing.h"
#include "models/outputs.h"

namespace zsq::eval {

struct Batch {
  at::Tensor images;  // f32 [N, 3, H, W], preprocessed
  // int64 [N]; bool [N, L] where an image has several; int64 [N, H, W] of masks; f64 [N, 7] of
  // images with boxes (eval/boxed_images.h)
  at::Tensor labels;
};

constexpr std::int64_t kNoLabel = -1;     // of images without any
constexpr std::int64_t kVoidLabel = 255;  // of pixels of a mask that belong to no class

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
// folder names), a flat folder with a ground-truth file, or without one (kNoLabel), masks as Pascal
// VOC has them (eval/sources.h), npz with images (f32 NCHW, preprocessed) and labels, integers [N],
// 0 and 1 [N, L], or masks [N, H, W]. Error(bad_input) says what was looked for.
std::unique_ptr<ImageSource> open_data(const std::string& path, const Preprocessing& preprocessing);

// data.eval_data by the preprocessing of `options`, whose size is given where images have to be
// decoded (npz needs no preprocessing); through data.eval_cache if that is set and the images
// are encoded (see eval/image_cache.h). What the cache does, the observer is told. With
// data.annotations they are BoxedImages, which no cache holds.
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
};

using Figures = std::vector<std::pair<std::string, double>>;

// Counts predictions of classes. Error(bad_input): labels that the network does not have, or none.
class ClassCounts {
 public:
  void add(const at::Tensor& logits, const at::Tensor& labels);  // [N, C] and int64 [N], on the CPU
  Figures figures() const;                                       // "top1", "top5"
  Result result() const;                                         // but for its seconds

 private:
  std::int64_t images_ = 0, first_ = 0, among_five_ = 0;
  std::vector<at::Tensor> predictions_, labels_;
};

// The only output of a row if that is a map, which masks are held against; else null.
const models::Output* only_map(const models::OutputRow& row);

// Counts pixels of maps against masks. Per cent, over the pixels of all images but those of
// kVoidLabel: the share whose largest output is their class, and the mean of the classes'
// intersection over union, TP / (TP + FP + FN), over the classes that a mask or the network names.
class MapCounts {
 public:
  // [N, C, H, W] and int64 [N, H, W], on the CPU. Error(bad_input): masks of another size, labels
  // that the network does not have.
  void add(const at::Tensor& logits, const at::Tensor& masks);
  // The same of the rows [N, K] of a network with this output.
  void add_rows(const models::Output& map, const at::Tensor& rows, const at::Tensor& masks);
  double pixel_accuracy() const;
  double mean_iou() const;
  Figures figures() const;  // "pixel_accuracy", "mean_iou"

 private:
  at::Tensor confusion_;  // int64 [C, C]: by label, by prediction
};

// Calls `use` with the outputs of each batch, f32 on the CPU, and its labels; what it returns is
// what the observer sees. The next images are loaded while `outputs_of` runs, which this thread
// calls (see eval/loader.h). It gets images on `device` and, so that a GPU is not idle until the
// next ones lie there, waits for nothing (see eval/device_batches.h). Returns the number of images.
// Error(bad_input): no image; Error(stopped).
std::int64_t for_each_batch(
    const std::function<at::Tensor(const at::Tensor&)>& outputs_of, const ImageSource& source,
    const DataOptions& options, Observer& observer, c10::Device device,
    const std::function<Figures(const at::Tensor& outputs, const at::Tensor& labels)>& use);

// `logits_of` has outputs of classes; Error(bad_input) of other labels than one class an image.
Result evaluate(const std::function<at::Tensor(const at::Tensor&)>& logits_of,
                const ImageSource& source, const DataOptions& options, Observer& observer,
                c10::Device device = at::kCPU);

}  // namespace zsq::eval
