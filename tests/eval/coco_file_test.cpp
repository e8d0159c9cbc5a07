// SPDX-License-Identifier: Apache-2.0
#include "eval/coco_file.h"

#include <gtest/gtest.h>

#include "formats/limits.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval::coco_file_test {
namespace {

constexpr const char* kImages = R"("images": [
  {"id": 7, "file_name": "b/seven.jpg", "width": 30, "height": 20}, {"id": 3, "file_name": "three.jpg"}])";
constexpr const char* kCategories =
    R"("categories": [{"id": 9, "name": "cat"}, {"id": 2, "name": "dog"}])";

std::string with(const std::string& images, const std::string& categories,
                 const std::string& annotations) {
  return "{" + images + ", " + categories + ", \"annotations\": [" + annotations + "]}";
}
std::string annotation(const std::string& more) {
  return R"({"image_id": 7, "category_id": 2, )" + more + "}";
}

class CocoFileTest : public testing::Test {
 protected:
  CocoFile read(const std::string& text) { return read_coco(folder_.file("boxes.json", text)); }
  std::string refusal(const std::string& text) {
    return test::error_message(ErrorCode::bad_input, [&] { read(text); });
  }
  std::string refused_box(const std::string& more) {
    return refusal(with(kImages, kCategories, annotation(more)));
  }

  test::TempFolder folder_;
};

TEST_F(CocoFileTest, HasImagesByIdAndCategoriesAsListed) {
  const CocoFile file = read(with(kImages, kCategories,
                                  annotation(R"("bbox": [1, 2.5, 10, 4], "area": 30, "iscrowd": 1,
                              "segmentation": [[1, 2, 3]])") +
                                      ", " + annotation(R"("bbox": [0, 0, 0, 4])")));
  ASSERT_EQ(file.images.size(), 2U);
  EXPECT_EQ(file.images[0].file, "three.jpg");
  EXPECT_EQ(file.images[0].size.height, 0);
  EXPECT_TRUE(file.images[0].boxes.empty());
  EXPECT_EQ(file.images[1].file, "b/seven.jpg");
  EXPECT_EQ(file.images[1].size, (ImageSize{20, 30}));
  ASSERT_EQ(file.images[1].boxes.size(), 2U);
  const TrueBox& box = file.images[1].boxes[0];
  EXPECT_EQ(box.box.top, 2.5);
  EXPECT_EQ(box.box.width, 10);
  EXPECT_EQ(box.area, 30);
  EXPECT_EQ(box.category, 1);
  EXPECT_TRUE(box.crowd);
  EXPECT_EQ(file.images[1].boxes[1].area, 0);
  EXPECT_FALSE(file.images[1].boxes[1].crowd);
  EXPECT_EQ(file.categories[0].id, 9);
  EXPECT_EQ(file.categories[1].name, "dog");
}

TEST_F(CocoFileTest, RefusesWhatIsNone) {
  EXPECT_NE(refusal("{\"images\": [").find("boxes.json: is no JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("has no list 'categories'"), std::string::npos);
  EXPECT_NE(refusal(std::string(200, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal(with(kImages, kCategories, "")).find("has no box"), std::string::npos);
  EXPECT_NE(refusal(with(kImages, kCategories, "5")).find("annotations[0] is no object"),
            std::string::npos);
  test::error_message(ErrorCode::bad_input, [&] { read_coco(folder_ / "missing.json"); });
}

TEST_F(CocoFileTest, NamesTheEntryThatIsWrong) {
  EXPECT_NE(refused_box(R"("bbox": [1, 2, -10, 4])").find("annotations[0].bbox is [1,2,-10,4]"),
            std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 10])").find("four numbers"), std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 10, "4"])").find("four numbers"), std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 1e999, 4])").find("is no JSON"), std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 3, 4], "area": -1)").find(".area"), std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 3, 4], "iscrowd": 2)").find(".iscrowd"),
            std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 3, 4], "image_id": 4)").find("the id of an image"),
            std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 3, 4], "category_id": 1.5)").find("an integer"),
            std::string::npos);
  EXPECT_NE(refused_box(R"("bbox": [1, 2, 3, 4], "category_id": 1)").find("id of a category"),
            std::string::npos);
}

TEST_F(CocoFileTest, RefusesFilesOutsideAndIdsThatAreThereTwice) {
  for (const char* file : {"/etc/passwd", "../x.jpg", "a/../../x.jpg", ""})
    EXPECT_NE(refusal(with(R"("images": [{"id": 1, "file_name": ")" + std::string(file) + "\"}]",
                           kCategories, ""))
                  .find("images[0].file_name"),
              std::string::npos);
  const std::string image = R"({"id": 1, "file_name": "x"})";
  EXPECT_NE(refusal(with("\"images\": [" + image + ", " + image + "]", kCategories, ""))
                .find("images[1].id is 1"),
            std::string::npos);
  const std::string category = R"({"id": 1, "name": "x"})";
  EXPECT_NE(refusal(with(kImages, "\"categories\": [" + category + ", " + category + "]", ""))
                .find("categories[1].id is 1"),
            std::string::npos);
}

TEST_F(CocoFileTest, BoundsTheBoxesOfAnImageAndTheFile) {
  std::string many = annotation("\"bbox\": [1, 2, 3, 4]");
  const std::string next = ", " + many;
  for (std::size_t i = 0; i < formats::kMaxBoxesOfImage; ++i) many += next;
  EXPECT_NE(refusal(with(kImages, kCategories, many)).find("more than 10000 boxes"),
            std::string::npos);
  const auto large = folder_.file("large.json", "{}");
  std::filesystem::resize_file(large, formats::kMaxAnnotationBytes + 1);  // a hole
  EXPECT_NE(test::error_message(ErrorCode::bad_input, [&] { read_coco(large); })
                .find("larger than 128 MiB"),
            std::string::npos);
}

}  // namespace
}  // namespace zsq::eval::coco_file_test
