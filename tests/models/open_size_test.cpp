// SPDX-License-Identifier: Apache-2.0
// Files that leave height or width open: whether an exported file may, and what its nodes are then.
#include "models/file_layout.h"
#include "tests/models/operators.h"
#include "tests/support/error_message.h"

namespace zsq::models::open_size_test {
namespace {

using Sides = std::array<bool, 2>;
constexpr Sides kBoth{true, true}, kNone{false, false}, kWidth{false, true}, kHeight{true, false};
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

// A map "m" [N, 6, H, W] of an image whose sides are open where `open` says so.
class Mapped : public OnnxFile {
 public:
  explicit Mapped(Names outputs, Sides open = kBoth) : OnnxFile(13, kImage) {
    initializer("w", wave({6, 4, 1, 1})).node("Conv", {"x", "w"}, {"m"});
    file.graph.outputs.clear();
    for (const auto& name : outputs) file.graph.outputs.push_back({name, 1, {}});
    for (std::size_t i = 0; i < 2; ++i)
      if (open[i]) file.graph.inputs[0].shape[2 + i].value = -1;
  }
  Mapped& ends(const std::string& type, Names inputs, Names outputs, Attributes attributes = {}) {
    node(type, std::move(inputs), std::move(outputs), std::move(attributes));
    return *this;
  }
  Mapped& numbers(const std::string& name, const Ints& values) {
    initializer(name, ints(values));
    return *this;
  }
  Mapped& initializer_of_kernel(const std::string& name, const at::Tensor& kernel) {
    initializer(name, kernel);
    return *this;
  }
  Signature signature(LoadOptions options = {.image_size = {kImage[1], kImage[2]}}) const {
    return import_onnx(file, options).graph.signature;
  }
};

Sides open(const Signature& signature) { return {signature.open_height, signature.open_width}; }
Sides open(const Mapped& file) { return open(file.signature()); }

Mapped pool(const char* type, Attributes attributes) {
  return Mapped({"p"}).ends(type, {"m"}, {"p"}, std::move(attributes));
}

TEST(OpenSize, IsKeptWhereNothingDependsOnIt) {
  EXPECT_EQ(open(Mapped({"m"})), kBoth);
  EXPECT_EQ(open(Mapped({"m", "s"}).ends("Sigmoid", {"m"}, {"s"})), kBoth);
  EXPECT_EQ(open(Mapped({"p"}).ends("GlobalAveragePool", {"m"}, {"p"})), kBoth);
  const Ints two{2, 2}, pads{1, 1, 1, 1};
  EXPECT_EQ(open(pool("MaxPool", {{"kernel_shape", two}, {"pads", pads}})), kBoth);
  EXPECT_EQ(open(pool("AveragePool", {{"kernel_shape", two}, {"strides", two}})), kBoth);
  // The pads of SAME_UPPER depend on the size: of 9 x 7 they are none, of 10 they are one.
  EXPECT_EQ(open(pool("MaxPool", {{"kernel_shape", Ints{3, 3}},
                                  {"strides", two},
                                  {"auto_pad", std::string("SAME_UPPER")}})),
            kNone);
  EXPECT_EQ(open(Mapped({"m"}, kNone).signature({})), kNone);
}

TEST(OpenSize, OfOneSideAloneIsKept) {
  EXPECT_EQ(open(Mapped({"m"}, kWidth)), kWidth);
  EXPECT_EQ(open(Mapped({"m"}, kHeight)), kHeight);
  Mapped half({"m"}, kHeight);
  half.file.graph.inputs[0].shape[1].value = -1;
  const auto signature =
      half.signature({.image_size = {kImage[1], kImage[2]}, .channels = kImage[0]});
  EXPECT_EQ(open(signature), kHeight);
  EXPECT_TRUE(signature.open_channels);
  // One side is multiplied away.
  Mapped columns({"y"});
  columns.initializer("v", wave({9, 2}));
  columns.ends("Transpose", {"m"}, {"t"}, {{"perm", Ints{0, 1, 3, 2}}});
  EXPECT_EQ(open(columns.ends("MatMul", {"t", "v"}, {"y"})), kWidth);
}

TEST(OpenSize, OfSignalsIsTheirLength) {
  OnnxFile file(13, {4, -1});
  file.initializer("w", wave({6, 4, 3})).node("Conv", {"x", "w"}, {"y"});
  file.file.graph.outputs[0].name = "y";
  EXPECT_EQ(open(import_onnx(file.file, {.image_size = {1, 30}}).graph.signature), kWidth);
  EXPECT_EQ(import_onnx(file.file, {.image_size = {30, 30}}).graph.input_shape[1], 1);
}

TEST(OpenSize, AnotherSizeThanThatOfTheFileIsAnError) {
  const auto message = [](const Mapped& file) {
    return test::error_message(ErrorCode::usage, [&] { file.signature({.image_size = {9, 8}}); });
  };
  EXPECT_NE(message(Mapped({"m"}, kHeight)).find("fixes width 7, and 8"), std::string::npos);
}

const OpenForm& form(const Signature& signature, const std::string& node) {
  EXPECT_EQ(open(signature), kBoth);
  return signature.open_forms.at(node);
}

TEST(OpenForms, AReshapeKeepsDimensionsAndLeavesOneOpen) {
  const auto rows =
      Mapped({"r"}).numbers("all", {0, 6, -1}).ends("Reshape", {"m", "all"}, {"r"}).signature();
  EXPECT_EQ(std::get<Reshape>(form(rows, "node_r").op).shape, (Ints{6, -1}));
  // [N, 3, 2, H, W], whose sides are where the map does not have them: one can follow from the
  // rest.
  Mapped parts({"r"});
  parts.numbers("first", {2}).numbers("last", {4}).numbers("split", {0, 3, 2});
  parts.ends("Shape", {"m"}, {"shape"}).ends("Slice", {"shape", "first", "last"}, {"sides"});
  parts.ends("Concat", {"split", "sides"}, {"all"}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(open(parts.ends("Reshape", {"m", "all"}, {"r"})), kWidth);
}

// Which one operator does, where an exporter finds it.
TEST(OpenForms, BlocksOfPixelsLeaveTwoOpen) {
  const auto signature = Mapped({"d"})
                             .initializer_of_kernel("up", wave({6, 3, 4, 4}))
                             .ends("ConvTranspose", {"m", "up"}, {"d"},
                                   {{"strides", Ints{2, 2}}, {"pads", Ints(4, 1)}})
                             .signature();
  EXPECT_EQ(open(signature), kBoth);
  int two = 0;
  for (const auto& [name, one] : signature.open_forms)
    if (const auto* reshape = std::get_if<Reshape>(&one.op))
      two += std::ranges::count(reshape->shape, -1) == 2 ? 1 : 0;
  EXPECT_EQ(two, 2);
}

TEST(OpenForms, ASliceCountsFromTheEnd) {
  Mapped file({"s"});
  file.numbers("first", {1, -3}).numbers("last", {-2, kLast}).numbers("axes", {2, 3});
  const auto signature = file.ends("Slice", {"m", "first", "last", "axes"}, {"s"}).signature();
  ASSERT_EQ(signature.open_forms.size(), 2U);
  std::vector<Ints> places;
  for (const auto& [name, one] : signature.open_forms) {
    const auto& slice = std::get<Slice>(one.op);
    places.push_back({slice.axis, slice.start, slice.end});
  }
  std::ranges::sort(places);
  EXPECT_EQ(places, (std::vector<Ints>{{2, 1, -2}, {3, -3, kLast}}));
}

TEST(OpenForms, APoolRoundsUpAtOtherSizes) {
  const Attributes attributes{
      {"kernel_shape", Ints{3, 1}}, {"strides", Ints{3, 1}}, {"ceil_mode", std::int64_t{1}}};
  const auto signature = pool("MaxPool", attributes).signature();
  EXPECT_TRUE(std::get<MaxPool>(form(signature, "node_p").op).ceil_mode);
  // Three rows at once, of which nine have no rest.
  EXPECT_EQ(open(pool("AveragePool", attributes)), kWidth);
}

// Half the map, rounded up, back to the size of "m"; "twice" has that of none.
TEST(OpenForms, AResizeHasTheSizeOfAnotherMap) {
  const auto resized = [](const Names& sizes, const std::string& mode) {
    Mapped file({"r"});
    file.numbers("sides", {2}).numbers("end", {4}).numbers("none", {0}).numbers("size", {9, 7});
    file.numbers("one", {1});
    file.ends("MaxPool", {"m"}, {"half"},
              {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints(4, 1)}});
    file.ends("Shape", {"m"}, {"shape"}).ends("Slice", {"shape", "sides", "end"}, {"as_m"});
    file.ends("Add", {"as_m", "one"}, {"larger"});
    file.ends("Slice", {"shape", "none", "sides"}, {"images"});
    file.ends("Concat", {"images", sizes[0]}, {"to"}, {{"axis", std::int64_t{0}}});
    return file.ends("Resize", {"half", "", "", "to"}, {"r"}, {{"mode", mode}});
  };
  for (const std::string mode : {"linear", "nearest"}) {
    const auto like = resized({"as_m"}, mode).signature();
    EXPECT_EQ(form(like, "node_r").size_of, "x");
    const auto fixed = resized({"size"}, mode).signature();
    EXPECT_EQ(form(fixed, "node_r").size_of, "");
    EXPECT_EQ(std::get<Interpolate>(form(fixed, "node_r").op).size, (Pair{9, 7}));
    EXPECT_EQ(open(resized({"larger"}, mode)), kNone);
  }
}

}  // namespace
}  // namespace zsq::models::open_size_test
