// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "eval/evaluate.h"
#include "formats/npy.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;

// A binary PPM of one colour: an image that a test can write by hand.
void write_ppm(const fs::path& path, int side, unsigned char red) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << "P6 " << side << " " << side << " 255\n";
  for (int i = 0; i < side * side; ++i) file << static_cast<char>(red) << '\0' << '\0';
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string message_of(const std::function<void()>& action) {
  return test::error_message(ErrorCode::bad_input, action);
}

class Data : public testing::Test {
 protected:
  Batch all(const fs::path& path) const {
    const auto source = open_data(path.string(), cifar_);
    return source->load(0, source->size());
  }
  std::string refusal(const fs::path& path) const {
    return message_of([&] { all(path); });
  }

  test::TempFolder folder_;
  const Preprocessing cifar_ = resolve({.preset = "cifar10"}, {32, 32});
};

std::vector<std::int64_t> labels_of(const Batch& batch) {
  const auto* data = batch.labels.data_ptr<std::int64_t>();
  return {data, data + batch.labels.numel()};
}

float red_of(double pixel) { return static_cast<float>((pixel / 255 - 0.485) / 0.229); }

using Labels = std::vector<std::int64_t>;

TEST_F(Data, CifarTenRecordsArePlanes) {
  std::string record(3073, '\0');
  record[0] = 7;
  record[1 + 33] = 100;  // red, row 1, column 1
  write_text(folder_ / "test_batch.bin", record + record);
  const Batch batch = all(folder_.path());
  EXPECT_EQ(labels_of(batch), (Labels{7, 7}));
  EXPECT_FLOAT_EQ(batch.images[1][0][1][1].item<float>(), red_of(100));
  EXPECT_FLOAT_EQ(batch.images[1][0][1][2].item<float>(), red_of(0));
}

TEST_F(Data, CifarHundredTakesTheFineLabel) {
  std::string record(3074, '\0');
  record[0] = 3;
  record[1] = 42;
  write_text(folder_ / "test.bin", record);
  EXPECT_EQ(labels_of(all(folder_.path())), Labels{42});
}

TEST_F(Data, CifarRefusesWrongSizeAndLabel) {
  write_text(folder_ / "a.bin", std::string(3072, '\0'));
  EXPECT_NE(refusal(folder_ / "a.bin").find("3072 bytes"), std::string::npos);
  write_text(folder_ / "empty.bin", "");
  EXPECT_NE(refusal(folder_ / "empty.bin").find("0 bytes"), std::string::npos);
  write_text(folder_ / "b.bin", std::string(3073, '\0') + std::string(3073, '\x0b'));
  EXPECT_NE(refusal(folder_ / "b.bin").find("record 1 has label 11"), std::string::npos);
}

TEST_F(Data, MissingAndEmptyFoldersSayWhatWasLookedFor) {
  EXPECT_NE(refusal(folder_ / "nowhere").find("does not exist"), std::string::npos);
  EXPECT_NE(refusal(folder_.path()).find("test_batch.bin"), std::string::npos);
  fs::create_directories(folder_ / "cat");
  EXPECT_NE(refusal(folder_.path()).find("no image"), std::string::npos);
  write_text(folder_ / "x.tar", "");
  EXPECT_NE(refusal(folder_ / "x.tar").find(".npz"), std::string::npos);
}

TEST_F(Data, NpzIsTakenAsItIs) {
  const std::vector<float> images{1, 2, 3, 4};
  const std::vector<std::int64_t> labels{5, 6};
  using formats::Array;
  using formats::DType;
  const auto image_array = Array::from<float>(DType::f32, {2, 1, 1, 2}, images);
  formats::write_npz(
      folder_ / "d.npz",
      {{"images", image_array}, {"labels", Array::from<std::int64_t>(DType::i64, {2}, labels)}});
  const Batch batch = all(folder_ / "d.npz");
  EXPECT_EQ(labels_of(batch), (Labels{5, 6}));
  EXPECT_EQ(batch.images[1][0][0][0].item<float>(), 3);
  formats::write_npz(folder_ / "bad.npz", {{"images", image_array}});
  EXPECT_EQ(labels_of(all(folder_ / "bad.npz")), (Labels{kNoLabel, kNoLabel}));
  formats::write_npz(folder_ / "bad.npz", {{"labels", image_array}});
  EXPECT_NE(refusal(folder_ / "bad.npz").find("no array 'images'"), std::string::npos);
  const auto masks = Array::from<std::int64_t>(DType::i64, {2, 1, 1}, labels);
  formats::write_npz(folder_ / "masks.npz", {{"images", image_array}, {"labels", masks}});
  EXPECT_EQ(all(folder_ / "masks.npz").labels.sizes(), at::IntArrayRef({2, 1, 1}));
  const auto pairs = Array::from<std::int64_t>(DType::i64, {2, 1}, labels);
  formats::write_npz(folder_ / "bad.npz", {{"images", image_array}, {"labels", pairs}});
  EXPECT_NE(refusal(folder_ / "bad.npz").find("has to hold 0 or 1"), std::string::npos);
}

TEST_F(Data, NpzSaysOfEachLabelWhetherAnImageHasIt) {
  using formats::Array;
  using formats::DType;
  const auto images = Array::from<float>(DType::f32, {2, 1, 1, 2}, std::vector<float>{1, 2, 3, 4});
  const auto with = [&](std::vector<std::int64_t> shape, const std::vector<float>& labels) {
    formats::write_npz(
        folder_ / "d.npz",
        {{"images", images}, {"labels", Array::from<float>(DType::f32, shape, labels)}});
    return folder_ / "d.npz";
  };
  const Batch batch = all(with({2, 3}, {0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(batch.labels.scalar_type(), at::kBool);
  EXPECT_EQ(batch.labels.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(batch.labels.sum().item<std::int64_t>(), 2);
  EXPECT_TRUE(batch.labels[0][1].item<bool>());
  EXPECT_EQ(labels_of(all(with({2, 1}, {0, 1}))), (Labels{0, 1}));  // one label: a class
  EXPECT_NE(refusal(with({2, 2}, {0, 1, 2, 0})).find("0 or 1 for each label"), std::string::npos);
  EXPECT_NE(refusal(with({2}, {0, 1})).find("one integer per image"), std::string::npos);
}

#ifdef ZSQ_OPENCV

TEST_F(Data, ClassFoldersAreNumberedBySortedNames) {
  write_ppm(folder_ / "dog/1.ppm", 32, 10);
  write_ppm(folder_ / "cat/2.ppm", 32, 20);
  write_ppm(folder_ / "cat/1.ppm", 32, 30);
  const Batch batch = all(folder_.path());
  EXPECT_EQ(labels_of(batch), (Labels{0, 0, 1}));
  EXPECT_FLOAT_EQ(batch.images[0][0][0][0].item<float>(), red_of(30));
  EXPECT_FLOAT_EQ(batch.images[2][0][31][31].item<float>(), red_of(10));
}

TEST_F(Data, SynsetsNumberTheClassesFromTheFolderOrItsParent) {
  write_ppm(folder_ / "val/dog/1.ppm", 32, 10);
  write_text(folder_ / "synsets.txt", "cat\nhen\ndog\n");
  EXPECT_EQ(labels_of(all(folder_ / "val")), Labels{2});
  EXPECT_EQ(labels_of(all(folder_ / "val/")), Labels{2});
  write_text(folder_ / "val/synsets.txt", "dog the animal\n");
  EXPECT_EQ(labels_of(all(folder_ / "val")), Labels{0});
  write_ppm(folder_ / "val/cow/1.ppm", 32, 10);
  EXPECT_NE(refusal(folder_ / "val").find("'cow'"), std::string::npos);
}

TEST_F(Data, FlatFolderWithGroundTruth) {
  write_ppm(folder_ / "a.ppm", 32, 10);
  write_ppm(folder_ / "b.ppm", 32, 20);
  write_text(folder_ / "ground_truth.txt", "3\n4\n");
  EXPECT_EQ(labels_of(all(folder_.path())), (Labels{3, 4}));
  write_text(folder_ / "synsets.txt", "cat\nhen\n");
  write_text(folder_ / "ground_truth.txt", "b.ppm hen\na.ppm 8\n");
  EXPECT_EQ(labels_of(all(folder_.path())), (Labels{1, 8}));
  write_text(folder_ / "ground_truth.txt", "b.ppm hen\nc.ppm 8\n");
  EXPECT_NE(refusal(folder_.path()).find("line 2"), std::string::npos);
  write_text(folder_ / "ground_truth.txt", "b.ppm cow\na.ppm 8\n");
  EXPECT_NE(refusal(folder_.path()).find("'cow'"), std::string::npos);
  write_text(folder_ / "ground_truth.txt", "3\n");
  EXPECT_NE(refusal(folder_.path()).find("names 1 images"), std::string::npos);
}

TEST_F(Data, ImagesOfAFolderWithoutGroundTruthHaveNoLabel) {
  write_ppm(folder_ / "b.ppm", 32, 10);
  write_ppm(folder_ / "a.ppm", 32, 20);
  const Batch batch = all(folder_.path());
  EXPECT_EQ(labels_of(batch), (Labels{kNoLabel, kNoLabel}));
  EXPECT_FLOAT_EQ(batch.images[0][0][0][0].item<float>(), red_of(20));
}

TEST_F(Data, DamagedImageIsNamed) {
  write_ppm(folder_ / "cat/fine.ppm", 32, 10);
  write_text(folder_ / "cat/spoilt.jpg", "no image at all");
  EXPECT_NE(refusal(folder_.path()).find("spoilt.jpg"), std::string::npos);
  // A start, one segment, and no end-of-image marker.
  write_text(folder_ / "cat/spoilt.jpg",
             std::string("\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xda", 10));
  EXPECT_NE(refusal(folder_.path()).find("cut short"), std::string::npos);
}

TEST_F(Data, OneImage) {
  write_ppm(folder_ / "a.ppm", 32, 40);
  const at::Tensor x = load_image(folder_ / "a.ppm", cifar_);
  EXPECT_EQ(x.sizes(), at::IntArrayRef({1, 3, 32, 32}));
  EXPECT_FLOAT_EQ(x[0][0][0][0].item<float>(), red_of(40));
}

#else

TEST_F(Data, WithoutOpenCvTheErrorOfAnotherFormatSaysSo) {
  write_ppm(folder_ / "cat/a.ppm", 32, 10);
  EXPECT_NE(refusal(folder_.path()).find("ZSQ_OPENCV"), std::string::npos);
}

#endif

}  // namespace
}  // namespace zsq::eval
