// SPDX-License-Identifier: Apache-2.0
#include "eval/image_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/error.h"
#include "core/stopwatch.h"
#include "eval/loader.h"
#include "eval/preprocess.h"
#include "formats/atomic_file.h"
#include "formats/safetensors.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDigest = 64;  // hexadecimal digits

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorCode::bad_input,
              what + "; this file of decoded images is damaged: delete it, and it is made anew");
}

std::string sha256(const std::string& text) {
  return formats::sha256(std::as_bytes(std::span(text)));
}

// The keys that pixels depend on; the others are applied to what is kept.
std::string geometry(const ImageFiles& source) {
  PreprocessingOptions keys = to_options(source.preprocessing());
  keys.value_range.reset();
  keys.mean.reset();
  keys.std.reset();
  keys.channel_order.reset();
  return to_json(keys);
}

// All that the pixels depend on.
std::string identity(const ImageFiles& source, std::int64_t count) {
  std::ostringstream text;
  text << "zsq images 2\n" << decoder_name() << "\n" << geometry(source) << "\n";
  for (std::int64_t i = 0; i < count; ++i) {
    const fs::path path = fs::absolute(source.file(i).path);
    text << path.string() << "\n"
         << fs::file_size(path) << " " << fs::last_write_time(path).time_since_epoch().count()
         << "\n";
  }
  return sha256(text.str());
}

// Pixels in place of what networks take: u8 [count, H, W, 3].
class Pixels : public ImageSource {
 public:
  explicit Pixels(const ImageFiles& files) : files_(files) {}
  std::int64_t size() const override { return files_.size(); }
  Batch load(std::int64_t begin, std::int64_t count) const override {
    const auto [height, width] = files_.preprocessing().size;
    Batch batch{at::empty({count, height, width, 3}, at::kByte), at::empty({count}, at::kLong)};
    for (std::int64_t i = 0; i < count; ++i) {
      const Image image = files_.pixels(begin + i);
      std::memcpy(batch.images.data_ptr<std::uint8_t>() + i * batch.images.stride(0),
                  image.pixels.data(), image.pixels.size());
    }
    return batch;
  }

 private:
  const ImageFiles& files_;
};

void write_cache(const fs::path& path, const ImageFiles& source, std::int64_t count,
                 const std::string& key, const DataOptions& options, Observer& observer) {
  fs::create_directories(path.parent_path());
  const auto [height, width] = source.preprocessing().size;
  formats::SafetensorsWriter writer(path,
                                    {{"pixels", formats::DType::u8, {count, height, width, 3}},
                                     {"sha256", formats::DType::u8, {count, kDigest}}},
                                    {{"key", key}, {"preprocessing", geometry(source)}});
  const Pixels pixels(source);
  Loader loader(pixels, count, options);
  std::string digests;
  const Stopwatch begin;
  for (std::int64_t done = 0; done < count;) {
    if (observer.stop_requested())
      throw Error(ErrorCode::stopped, "stopped after decoding " + std::to_string(done) + " of " +
                                          std::to_string(count) + " images for " + path.string());
    const at::Tensor images = loader.next().images;
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(images.const_data_ptr()),
                                           images.nbytes());
    writer.write(bytes);
    const std::size_t image_bytes = bytes.size() / static_cast<std::size_t>(images.size(0));
    for (std::size_t at = 0; at < bytes.size(); at += image_bytes)
      digests += formats::sha256(bytes.subspan(at, image_bytes));
    done += images.size(0);
    observer.on_progress({"decode", done, count, begin.seconds(), {}});
  }
  writer.write(std::as_bytes(std::span(digests)));
  writer.commit();
}

class CachedImages : public ImageSource {
 public:
  CachedImages(const fs::path& path, const ImageFiles& source, std::int64_t count)
      : path_(path), reader_(path), preprocessing_(source.preprocessing()) {
    for (std::int64_t i = 0; i < count; ++i) labels_.push_back(source.file(i).label);
    for (const auto& entry : reader_.entries()) {
      if (entry.name == "pixels") pixels_ = entry;
      if (entry.name == "sha256") digests_ = entry;
    }
  }

  std::string key() const {
    const auto found = reader_.metadata().find("key");
    return found == reader_.metadata().end() ? "" : found->second;
  }

  // For a file whose key fits: damage can still have taken the tensors.
  void require_shapes() const {
    const std::vector<std::int64_t> pixels{size(), preprocessing_.size.height,
                                           preprocessing_.size.width, 3};
    if (pixels_.shape != pixels || digests_.shape != std::vector<std::int64_t>{size(), kDigest} ||
        pixels_.dtype != formats::DType::u8 || digests_.dtype != formats::DType::u8)
      damaged(path_.string() + " does not hold the tensors that were written");
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }

  Batch load(std::int64_t begin, std::int64_t count) const override {
    Batch batch{at::empty({count, preprocessing_.channels(), preprocessing_.size.height,
                           preprocessing_.size.width},
                          at::kFloat),
                at::empty({count}, at::kLong)};
    for (std::int64_t i = 0; i < count; ++i) {
      const auto pixels = read(begin + i);
      normalize({reinterpret_cast<const std::uint8_t*>(pixels.data()), pixels.size()},
                preprocessing_, batch.images.data_ptr<float>() + i * batch.images.stride(0));
      batch.labels.data_ptr<std::int64_t>()[i] = labels_[static_cast<std::size_t>(begin + i)];
    }
    return batch;
  }

 private:
  std::vector<std::byte> read(std::int64_t image) const {
    const auto i = static_cast<std::uint64_t>(image);
    const auto bytes =
        static_cast<std::uint64_t>(3 * preprocessing_.size.height * preprocessing_.size.width);
    auto pixels = reader_.read(pixels_, i * bytes, bytes);
    const auto digest = reader_.read(digests_, i * kDigest, kDigest);
    const std::string found = formats::sha256(pixels);
    if (!std::ranges::equal(digest, std::as_bytes(std::span(found))))
      damaged(path_.string() + ": image " + std::to_string(image) + " is not what was written");
    return pixels;
  }

  fs::path path_;
  formats::SafetensorsReader reader_;
  Preprocessing preprocessing_;
  std::vector<std::int64_t> labels_;
  formats::SafetensorsReader::Entry pixels_, digests_;
};

}  // namespace

std::unique_ptr<ImageSource> cached(const ImageFiles& source, const DataOptions& options,
                                    Observer& observer) {
  const std::int64_t count = images_to_use(source, options);
  // One file per question, so that a changed data set replaces its file and does not add one.
  const std::string question = fs::absolute(options.eval_data).string() + "\n" + geometry(source) +
                               "\n" + std::to_string(options.eval_images);
  const std::string name = fs::path(source.preprocessing().name).stem().string();
  const fs::path path =
      fs::path(options.eval_cache) /
      ((name.empty() ? "images" : name) + "-" + sha256(question).substr(0, 16) + ".safetensors");
  const std::string key = identity(source, count);
  const auto open = [&] {
    try {
      return std::make_unique<CachedImages>(path, source, count);
    } catch (const Error& error) {
      damaged(error.what());
    }
  };
  std::unique_ptr<CachedImages> result;
  if (fs::exists(path)) result = open();
  if (!result || result->key() != key) {
    observer.on_message(LogLevel::info,
                        (result ? "the images have changed: decoding " : "decoding ") +
                            std::to_string(count) + " images once, into " + path.string());
    write_cache(path, source, count, key, options, observer);
    result = open();
  }
  result->require_shapes();
  return result;
}

}  // namespace zsq::eval
