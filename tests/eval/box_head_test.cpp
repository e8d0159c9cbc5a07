// SPDX-License-Identifier: Apache-2.0
#include "eval/box_head.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_message.h"

namespace zsq::eval::box_head_test {
namespace {

using Outputs = std::vector<models::FileTensor>;
constexpr ImageSize kInput{64, 96};  // 96, 24 and 6 places in maps of strides 8, 16, 32

CocoFile categories(std::int64_t count, std::int64_t first = 1) {
  CocoFile file{"boxes.json", {}, {}};
  for (std::int64_t i = 0; i < count; ++i) file.categories.push_back({first + i, "c"});
  return file;
}

Outputs of_shapes(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes) {
  Outputs outputs;
  for (auto [name, shape] : shapes) {
    shape.insert(shape.begin(), 1);
    outputs.push_back({name, at::zeros(shape)});
  }
  return outputs;
}

BoxHead found(const Outputs& outputs, std::int64_t classes,
              BoxLayout asked = BoxLayout::automatic) {
  return find_head(outputs, kInput, asked, categories(classes));
}
std::string refusal(const Outputs& outputs, std::int64_t classes,
                    BoxLayout asked = BoxLayout::automatic) {
  return test::error_message(ErrorCode::usage, [&] { found(outputs, classes, asked); });
}

Outputs yunet_outputs() {
  Outputs outputs;
  for (const auto& [name, columns] :
       {std::pair("cls_", 1), {"obj_", 1}, {"bbox_", 4}, {"kps_", 10}})
    for (const std::int64_t stride : {8, 16, 32})
      outputs.push_back(
          {name + std::to_string(stride), at::zeros({1, 64 / stride * (96 / stride), columns})});
  return outputs;
}

TEST(FindHead, TellsLayoutsByShapesAndNames) {
  EXPECT_EQ(found(of_shapes({{"out", {6, 126}}}), 2).layout, BoxLayout::yolov8);
  EXPECT_EQ(found(of_shapes({{"out", {378, 7}}}), 2).layout, BoxLayout::yolov5);
  EXPECT_EQ(found(of_shapes({{"raw", {3, 8, 12, 7}}, {"out", {378, 7}}}), 2).layout,
            BoxLayout::yolov5);
  // With a map of stride 64: 1 x 2 places more.
  EXPECT_EQ(found(of_shapes({{"out", {6, 128}}}), 2).layout, BoxLayout::yolov8);
  const BoxHead ssd = found(of_shapes({{"scores", {50, 2}}, {"x", {50, 1, 4}}}), 2);
  EXPECT_EQ(ssd.layout, BoxLayout::ssd);
  EXPECT_EQ(ssd.outputs, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(found(of_shapes({{"boxes", {50, 4}}, {"scores", {50, 4}}}), 4).outputs[0], 0U);
  EXPECT_EQ(found(yunet_outputs(), 1).layout, BoxLayout::yunet);
  const BoxHead decoded =
      found(of_shapes({{"labels", {9}}, {"scores", {9, 1}}, {"dets", {9, 4}}}), 3);
  EXPECT_EQ(decoded.layout, BoxLayout::decoded);
  EXPECT_EQ(decoded.outputs, (std::vector<std::size_t>{2, 1, 0}));
}

// What a softmax gives is no box, and what non-maximum suppression reads may be transposed.
TEST(FindHead, TellsBoxesByTheEndOfTheNetwork) {
  using Indices = std::vector<std::size_t>;
  const auto alike = of_shapes({{"/Softmax_output_0", {50, 4}}, {"/Concat_output_0", {50, 4}}});
  const auto head = [](const Outputs& outputs, std::int64_t classes, const NetworkEnd& end) {
    return find_head(outputs, kInput, BoxLayout::automatic, categories(classes), end);
  };
  refusal(alike, 3);
  const BoxHead softmax = head(alike, 3, {.is_probability = {true, false}});
  EXPECT_EQ(softmax.layout, BoxLayout::ssd);
  EXPECT_EQ(softmax.outputs, (Indices{1, 0}));
  EXPECT_EQ(softmax.categories, (std::vector<std::int64_t>{-1, 0, 1, 2}));
  const NetworkEnd suppression{{}, "NonMaxSuppression", false, true};
  Outputs columns = of_shapes({{"a", {3, 50}}, {"b", {50, 4}}});
  refusal(columns, 3);
  const BoxHead transposed = head(columns, 3, suppression);
  EXPECT_EQ(transposed.outputs, (Indices{1, 0}));
  columns[0].value[0][2][7] = 0.5F;
  columns[1].value[0][7].copy_(at::tensor({30.F, 20.F, 10.F, 8.F}));
  const Candidates found = decode(transposed, columns, kInput);
  EXPECT_EQ(found.scores.sizes(), at::IntArrayRef({1, 50, 3}));
  EXPECT_EQ(found.scores[0][7][2].item<float>(), 0.5F);
  EXPECT_EQ(found.corners[0][7][0].item<float>(), 25);  // centres, as this one takes them
  EXPECT_EQ(found.corners[0][7][3].item<float>(), 24);
  // The largest score of each box beside them, but no second table.
  const NetworkEnd best{{}, "TopK", true, false};
  const auto three = of_shapes({{"max", {50}}, {"boxes", {50, 4}}, {"c", {50, 3}}});
  EXPECT_EQ(head(three, 3, best).outputs, (Indices{1, 2}));
  refusal(three, 3);
  const auto landmarks = of_shapes({{"boxes", {50, 4}}, {"c", {50, 3}}, {"d", {50, 10}}});
  const std::string message =
      test::error_message(ErrorCode::usage, [&] { head(landmarks, 3, best); });
  EXPECT_NE(message.find("what the last operators of the network read (TopK"), std::string::npos)
      << message;
}

// As many boxes as places and objectness: YOLOX's export, whose boxes may be decoded or not.
TEST(FindHead, DoesNotGuess) {
  const auto yolox = of_shapes({{"output", {126, 7}}});
  const std::string message = refusal(yolox, 2);
  EXPECT_NE(message.find("'output' [126, 7]"), std::string::npos) << message;
  EXPECT_NE(message.find("yolov8 [4 + classes, boxes]"), std::string::npos);
  EXPECT_EQ(found(yolox, 2, BoxLayout::yolov5).layout, BoxLayout::yolov5);
  const auto unnamed = of_shapes({{"a", {9, 4}}, {"b", {9}}, {"c", {9}}});
  refusal(unnamed, 3);
  EXPECT_EQ(found(unnamed, 3, BoxLayout::decoded).outputs, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_NE(refusal(of_shapes({{"logits", {1000}}}), 2).find("'logits' [1000]"), std::string::npos);
  EXPECT_NE(refusal(yolox, 2, BoxLayout::yunet).find("not as --boxes yunet says"),
            std::string::npos);
}

TEST(FindHead, AssignsCategoriesInOrderOrById) {
  using Indices = std::vector<std::int64_t>;
  const auto pair = [](std::int64_t classes) {
    return of_shapes({{"boxes", {50, 4}}, {"scores", {50, classes}}});
  };
  EXPECT_EQ(found(pair(2), 2).categories, (Indices{0, 1}));
  EXPECT_EQ(found(pair(3), 2).categories, (Indices{-1, 0, 1}));  // the background
  CocoFile file = categories(2, 89);
  const BoxHead by_id = find_head(pair(91), kInput, BoxLayout::automatic, file);
  EXPECT_TRUE(by_id.by_id);
  EXPECT_EQ(by_id.categories[89], 0);
  EXPECT_EQ(by_id.categories[90], 1);
  EXPECT_EQ(by_id.categories[0], -1);
  file.categories[1].id = 91;
  EXPECT_NE(test::error_message(ErrorCode::usage,
                                [&] { find_head(pair(91), kInput, BoxLayout::automatic, file); })
                .find("id 91"),
            std::string::npos);
  EXPECT_NE(refusal(pair(5), 2).find("scores of 5 classes, and boxes.json has 2 categories"),
            std::string::npos);
  refusal(of_shapes({{"out", {7, 126}}}), 2);  // no background in YOLO
}

Candidates decoded(const BoxHead& head, const Outputs& outputs) {
  return decode(head, outputs, kInput);
}
void expect_row(const at::Tensor& values, std::int64_t row, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_FLOAT_EQ(values[0][row][static_cast<std::int64_t>(i)].item<float>(), expected[i]) << i;
}

TEST(Decode, YoloBoxesAreCentresAndSizes) {
  Outputs v8 = of_shapes({{"out", {6, 126}}}), v5 = of_shapes({{"out", {378, 7}}});
  v8[0].value[0].select(1, 5).copy_(at::tensor({30.F, 20.F, 10.F, 8.F, 0.25F, 0.75F}));
  v5[0].value[0][5].copy_(at::tensor({30.F, 20.F, 10.F, 8.F, 0.5F, 0.5F, 1.F}));
  const Candidates a = decoded(found(v8, 2), v8), b = decoded(found(v5, 2), v5);
  EXPECT_EQ(a.corners.sizes(), at::IntArrayRef({1, 126, 4}));
  EXPECT_EQ(b.scores.sizes(), at::IntArrayRef({1, 378, 2}));
  expect_row(a.corners, 5, {25, 16, 35, 24});
  expect_row(a.scores, 5, {0.25, 0.75});
  expect_row(b.corners, 5, {25, 16, 35, 24});
  expect_row(b.scores, 5, {0.25, 0.5});
}

// By hand: row 2 and column 3 of the map of stride 16, which has 4 x 6 places after the 96 of
// stride 8.
TEST(Decode, YunetBoxesAreOffsetsFromTheirPlace) {
  Outputs outputs = yunet_outputs();
  const BoxHead head = found(outputs, 1);
  const std::int64_t place = 2 * 6 + 3;
  outputs[1].value[0][place][0] = 0.81;  // cls_16
  outputs[4].value[0][place][0] = 1.5;   // obj_16, clamped
  outputs[7].value[0][place].copy_(at::tensor({0.5F, -0.25F, std::log(2.F), std::log(3.F)}));
  const Candidates found = decoded(head, outputs);
  EXPECT_EQ(found.corners.sizes(), at::IntArrayRef({1, 126, 4}));
  expect_row(found.corners, 96 + place, {56 - 16, 28 - 24, 56 + 16, 28 + 24});
  expect_row(found.scores, 96 + place, {0.9F});
}

TEST(Decode, LabelsBecomeColumns) {
  Outputs outputs = of_shapes({{"boxes", {3, 4}}, {"scores", {3}}, {"labels", {3}}});
  const BoxHead head = found(outputs, 2);
  outputs[0].value[0][1][3] = 7;
  outputs[1].value[0].copy_(at::tensor({0.5F, 0.25F, 0.75F}));
  outputs[2].value[0].copy_(at::tensor({1.F, 0.F, -1.F}));
  const Candidates found = decoded(head, outputs);
  expect_row(found.corners, 1, {0, 0, 0, 7});
  expect_row(found.scores, 0, {0, 0.5});
  expect_row(found.scores, 1, {0.25, 0});
  expect_row(found.scores, 2, {0, 0});
  outputs[2].value[0][0] = 2;
  EXPECT_NE(test::error_message(ErrorCode::usage, [&] { decoded(head, outputs); }).find("label 2"),
            std::string::npos);
}

}  // namespace
}  // namespace zsq::eval::box_head_test
