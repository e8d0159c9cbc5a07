// SPDX-License-Identifier: Apache-2.0
// Images from a file in the place of some that the generator makes.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "generator/image_options.h"
#include "train/step.h"

namespace zsq::train {

struct ImageBank {
  at::Tensor images;                            // f32 [N, C, H, W], as the teacher takes them
  std::map<std::string, std::string> metadata;  // of the file: source_sha256, seed, ...
};

// safetensors with `images`; Error(bad_input) if it lacks them, Error(usage) if they do not
// have the shape that the teacher takes.
ImageBank load_bank(const std::filesystem::path& path, const models::Model& teacher);

// What a batch takes from a bank.
class BankDraws {
 public:
  // share: of each batch, rounded to whole images; options: crops, flips, mixup and CutMix on the
  // way in.
  BankDraws(ImageBank bank, double share, const ImageOptions& options, std::uint64_t seed)
      : bank_(std::move(bank)), share_(share), options_(options), seed_(seed) {}

  // The images [n, C, H, W], `rows` of a batch, with the last of the batch replaced by images drawn
  // from the bank. What is drawn depends on (seed, step, size of the batch) and the bank.
  at::Tensor mixed(const at::Tensor& images, std::uint64_t step, const parallel::Rows& rows) const;
  at::Tensor mixed(const at::Tensor& images, std::uint64_t step) const {
    return mixed(images, step, {0, images.size(0), images.size(0)});
  }
  // The same with the teacher's predictions to them, which are their targets too, and its values at
  // `features`.
  Batch mixed(const Batch& batch, const models::Model& teacher,
              const std::vector<models::NodeId>& features, std::uint64_t step,
              const parallel::Rows& rows) const;
  Batch mixed(const Batch& batch, const models::Model& teacher,
              const std::vector<models::NodeId>& features, std::uint64_t step) const {
    const auto n = batch.images.size(0);
    return mixed(batch, teacher, features, step, {0, n, n});
  }

  // Whether a batch takes all its images from the bank, so that nothing of a generator's is left.
  bool whole() const { return share_ == 1; }
  at::Tensor images(const models::Graph& network, at::Device device, std::uint64_t step,
                    const parallel::Rows& rows) const;
  // Such a batch, with the teacher's predictions and values as in mixed(), and without losses.
  Batch batch(const models::Model& teacher, const std::vector<models::NodeId>& features,
              std::uint64_t step, const parallel::Rows& rows) const;

  const ImageOptions& options() const { return options_; }
  const at::Tensor& images() const { return bank_.images; }

 private:
  // Of `rows`, those that stay.
  std::int64_t kept(const parallel::Rows& rows) const;

  ImageBank bank_;
  double share_;
  ImageOptions options_;
  std::uint64_t seed_;
};

}  // namespace zsq::train
