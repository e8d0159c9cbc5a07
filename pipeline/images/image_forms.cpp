// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/image_forms.h"

#include <ATen/ops/cat.h>

#include "core/error.h"
#include "core/nearest_name.h"
#include "eval/image.h"
#include "eval/preprocess.h"
#include "formats/atomic_file.h"
#include "formats/npy.h"
#include "formats/onnx_tensor_file.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "pipeline/session/format.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;
using formats::DType;

// Both live as long as what is written from them.
std::span<const std::byte> bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

std::string padded(std::int64_t number, std::int64_t largest) {
  const int width = static_cast<int>(std::to_string(largest).size());
  return format("%0*lld", width, static_cast<long long>(number));
}

class Safetensors : public ImageWriter {
 public:
  Safetensors(const fs::path& folder, const ImageSet& set)
      : file_(folder / "bank.safetensors",
              {{"images", DType::f32, set.shape}, {"labels", DType::i64, {set.shape[0]}}},
              set.metadata) {}
  void add(const train::MadeImages& made) override {
    file_.write(bytes_of(made.images.contiguous()));
    labels_.push_back(made.labels);
  }
  void finish() override {
    file_.write(bytes_of(at::cat(labels_)));
    file_.commit();
  }

 private:
  formats::SafetensorsWriter file_;
  std::vector<at::Tensor> labels_;
};

class Npy : public ImageWriter {
 public:
  Npy(const fs::path& folder, const ImageSet& set)
      : images_(folder / "images.npy", DType::f32, set.shape),
        labels_(folder / "labels.npy", DType::i64, {set.shape[0]}) {}
  void add(const train::MadeImages& made) override {
    images_.write(bytes_of(made.images.contiguous()));
    labels_.write(bytes_of(made.labels.contiguous()));
  }
  void finish() override {
    images_.commit();
    labels_.commit();
  }

 private:
  formats::NpyWriter images_, labels_;
};

class Npz : public ImageWriter {
 public:
  Npz(const fs::path& folder, const ImageSet&) : file_(folder / "images.npz") {}
  void add(const train::MadeImages& made) override {
    images_.push_back(made.images);
    labels_.push_back(made.labels);
  }
  void finish() override {
    formats::write_npz(file_, {{"images", models::to_array(at::cat(images_))},
                               {"labels", models::to_array(at::cat(labels_))}});
  }

 private:
  fs::path file_;
  std::vector<at::Tensor> images_, labels_;
};

class Ort : public ImageWriter {
 public:
  Ort(const fs::path& folder, const ImageSet&) : folder_(folder) {}
  void add(const train::MadeImages& made) override {
    for (std::int64_t i = 0; i < made.images.size(0); ++i) {
      const fs::path set = folder_ / ("test_data_set_" + std::to_string(made.first + i));
      fs::create_directory(set);
      const auto one = [&](const at::Tensor& t) { return models::to_array(t.narrow(0, i, 1)); };
      formats::onnx::write_tensor(set / "input_0.pb", one(made.images));
      formats::onnx::write_tensor(set / "output_0.pb", one(made.logits));
    }
  }
  void finish() override {}

 private:
  fs::path folder_;
};

// Class folders are made where there are images; synsets.txt numbers them all the same.
class Png : public ImageWriter {
 public:
  Png(const fs::path& folder, const ImageSet& set) : folder_(folder), set_(set) {}
  void add(const train::MadeImages& made) override {
    for (std::int64_t i = 0; i < made.images.size(0); ++i) {
      const fs::path place = folder_ / name_of(made.labels[i].item<std::int64_t>());
      fs::create_directories(place);
      const auto second =
          made.second_labels.defined() ? made.second_labels[i].item<std::int64_t>() : -1;
      formats::write_atomically(
          place / (padded(made.first + i, set_.shape[0] - 1) +
                   (second < 0 ? "" : "_" + name_of(second)) + ".png"),
          eval::encode_png(eval::to_pixels(made.images[i], *set_.preprocessing)));
    }
  }
  void finish() override {
    std::string names;
    for (std::int64_t c = 0; c < set_.classes; ++c) names += name_of(c) + "\n";
    formats::write_atomically(folder_ / "synsets.txt", std::string_view(names));
  }

 private:
  std::string name_of(std::int64_t label) const { return padded(label, set_.classes - 1); }

  fs::path folder_;
  ImageSet set_;
};

template <class Writer>
std::unique_ptr<ImageWriter> make(const fs::path& folder, const ImageSet& set) {
  return std::make_unique<Writer>(folder, set);
}

struct Form {
  const char* name;
  // Stands in a folder that holds such images, where old and new ones would mix.
  const char* mark;
  std::unique_ptr<ImageWriter> (*open)(const fs::path&, const ImageSet&);
};

constexpr Form kForms[] = {{"png", "synsets.txt", make<Png>},
                           {"npy", "", make<Npy>},
                           {"npz", "", make<Npz>},
                           {"ort", "test_data_set_0", make<Ort>},
                           {"safetensors", "", make<Safetensors>}};

const Form& find_form(const std::string& name) {
  for (const Form& form : kForms)
    if (name == form.name) return form;
  throw Error(ErrorCode::usage, unknown_name_message("form of images", name, image_form_names()));
}

}  // namespace

std::vector<std::string> image_form_names() {
  std::vector<std::string> names;
  for (const Form& form : kForms) names.emplace_back(form.name);
  return names;
}

void require_image_form(const std::string& form, const fs::path& taken) {
  const std::string mark = find_form(form).mark;
  if (mark.empty() || !fs::exists(taken / mark)) return;
  throw Error(ErrorCode::usage, "'" + taken.string() + "' holds images already (" + mark +
                                    "); choose another folder, or empty this one");
}

std::unique_ptr<ImageWriter> open_image_writer(const std::string& form, const fs::path& folder,
                                               const ImageSet& set) {
  return find_form(form).open(folder, set);
}

}  // namespace zsq::pipeline
