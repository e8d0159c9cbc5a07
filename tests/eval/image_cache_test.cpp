// SPDX-License-Identifier: Apache-2.0
#include "eval/image_cache.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "formats/safetensors.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;

struct Listener : Observer {
  void on_message(LogLevel, const std::string& message) override { messages.push_back(message); }
  void on_progress(const Progress& progress) override { steps.push_back(progress.step); }
  bool stop_requested() override { return static_cast<std::int64_t>(steps.size()) == stop_after; }
  std::vector<std::string> messages;
  std::vector<std::int64_t> steps;
  std::int64_t stop_after = -1;
};

class ImageCache : public testing::Test {
 protected:
  ImageCache() {
    options_.eval_data = (folder_ / "images").string();
    options_.eval_cache = (folder_ / "kept/here").string();
    options_.preset = "efficientnet_lite0";
    options_.eval_batch_size = 2;
    for (int i = 0; i < 5; ++i) write_image(i, 40 * i);
  }

  fs::path image(int i) const {
    return folder_ / ("images/class" + std::to_string(i % 2)) / (std::to_string(i) + ".ppm");
  }

  // Colours that differ from pixel to pixel, so that resizing and rounding have something to do.
  void write_image(int i, int colour) const {
    fs::create_directories(image(i).parent_path());
    std::ofstream file(image(i), std::ios::binary);
    file << "P6 60 50 255\n";
    for (int k = 0; k < 60 * 50 * 3; ++k) file << static_cast<char>(colour + k * k % 97);
  }

  Batch load(Listener& listener) const {
    const auto source = open_data(options_, listener);
    return source->load(0, source->size());
  }

  Batch decode() const {
    const auto source = open_data(options_.eval_data, resolve(options_, {}));
    return source->load(0, images_to_use(*source, options_));
  }

  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    if (fs::exists(options_.eval_cache))
      for (const auto& entry : fs::directory_iterator(options_.eval_cache))
        files.push_back(entry.path());
    return files;
  }

  void expect_damaged() const {
    Listener listener;
    try {
      load(listener);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_NE(std::string(error.what()).find(kept().at(0).string()), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("delete it"), std::string::npos) << error.what();
    }
  }

  test::TempFolder folder_;
  DataOptions options_;
};

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_TRUE(at::equal(a.images, b.images));
  EXPECT_TRUE(at::equal(a.labels, b.labels));
}

TEST_F(ImageCache, GivesWhatDecodingGives) {
  for (const char* name : {"efficientnet_lite0", "torchvision"}) {
    options_.preset = name;
    Listener first, second;
    expect_same(load(first), decode());
    expect_same(load(second), decode());
    EXPECT_EQ(first.steps, (std::vector<std::int64_t>{2, 4, 5}));
    EXPECT_EQ(first.messages.size(), 1u);
    EXPECT_TRUE(second.steps.empty());
    EXPECT_TRUE(second.messages.empty());
  }
  EXPECT_EQ(kept().size(), 2u);
}

TEST_F(ImageCache, AnswersWithoutTheImages) {
  Listener listener;
  const Batch before = load(listener);
  const auto changed = fs::last_write_time(image(3));
  write_image(3, 200);
  fs::last_write_time(image(3), changed);
  expect_same(load(listener), before);
  EXPECT_EQ(listener.messages.size(), 1u);
}

TEST_F(ImageCache, IsMadeAnewWhenTheImagesChange) {
  Listener listener;
  load(listener);
  write_image(3, 200);
  fs::last_write_time(image(3), fs::last_write_time(image(3)) + std::chrono::seconds(1));
  expect_same(load(listener), decode());
  write_image(5, 200);
  expect_same(load(listener), decode());
  ASSERT_EQ(listener.messages.size(), 3u);
  EXPECT_NE(listener.messages[1].find("have changed"), std::string::npos);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(ImageCache, LabelsAreNotKept) {
  Listener listener;
  load(listener);
  std::ofstream(folder_ / "images/synsets.txt") << "class1\nclass0\n";
  const Batch again = load(listener);
  expect_same(again, decode());
  EXPECT_EQ(again.labels[0].item<std::int64_t>(), 1);
  EXPECT_EQ(listener.messages.size(), 1u);
}

TEST_F(ImageCache, HoldsTheFirstImagesOnlyWhereNoMoreAreAskedFor) {
  options_.eval_images = 3;
  Listener listener;
  const Batch batch = load(listener);
  EXPECT_EQ(batch.labels.size(0), 3);
  expect_same(batch, decode());
}

TEST_F(ImageCache, DamageIsAnError) {
  Listener listener;
  load(listener);
  const fs::path path = kept().at(0);
  const auto size = fs::file_size(path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size / 2));
    const char byte = static_cast<char>(file.peek() ^ 1);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << byte;
  }
  expect_damaged();
  fs::resize_file(path, size - 1);
  expect_damaged();
  fs::resize_file(path, 0);
  expect_damaged();
  fs::remove(path);
  expect_same(load(listener), decode());
}

TEST_F(ImageCache, TensorsOfAnotherShapeAreAnError) {
  Listener listener;
  load(listener);
  const fs::path path = kept().at(0);
  auto file = formats::read_safetensors(path);
  std::swap(file.tensors[0].first, file.tensors[1].first);
  formats::write_safetensors(path, file);
  expect_damaged();
}

TEST_F(ImageCache, NothingRemainsOfAStopOrAnError) {
  Listener listener;
  listener.stop_after = 1;
  try {
    load(listener);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
  }
  EXPECT_TRUE(kept().empty());
  std::ofstream(image(4)) << "no image";
  Listener other;
  EXPECT_THROW(load(other), Error);
  EXPECT_TRUE(kept().empty());
}

}  // namespace
}  // namespace zsq::eval
