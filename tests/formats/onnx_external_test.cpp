// SPDX-License-Identifier: Apache-2.0
// External data is where a model names other files. One test for each way in which models have read
// what they should not: the classes of CVE-2022-25882, 2024-27318, 2025-51480, 2026-27489 and
// 2026-34445.
#include <gtest/gtest.h>

#include "formats/onnx.h"
#include "tests/formats/onnx_bytes.h"

namespace zsq::formats::onnx {
namespace {

std::string entry(const std::string& key, const std::string& value) {
  return text(13, text(1, key) + text(2, value));
}

// Two floats, somewhere else.
std::string external(const std::string& location, const std::string& more = "",
                     std::int64_t elements = 2) {
  return model(text(5, number(1, elements) + number(2, 1) + text(8, "w") +
                           entry("location", location) + more + number(14, 1)));
}

struct Place {
  TempFolder folder;
  std::string data = raw(1.f) + raw(2.f) + raw(3.f);

  Place() {
    std::filesystem::create_directories(folder / "model/sub");
    folder.file("secret", data);
    folder.file("model/w.bin", data);
    folder.file("model/sub/w.bin", data);
  }
  Array load(const std::string& bytes) const {
    return read(folder.file("model/m.onnx", bytes)).graph.initializers.at(0).second;
  }
  void refuse(const std::string& bytes, const char* part) const {
    expect_error([&] { load(bytes); }, ErrorCode::bad_input, part);
  }
};

TEST(OnnxExternal, ReadsBesideTheModel) {
  const Place place;
  const Array first = make_array<float>(DType::f32, {2}, {1, 2});
  const Array last = make_array<float>(DType::f32, {2}, {2, 3});
  expect_same(place.load(external("w.bin")), first);
  expect_same(place.load(external("sub/w.bin")), first);
  expect_same(place.load(external("./w.bin", entry("offset", "4") + entry("length", "8"))), last);
}

TEST(OnnxExternal, ModelNamedWithoutAFolder) {
  const Place place;
  place.folder.file("model/m.onnx", external("w.bin"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(place.folder / "model");
  const Model model = read("m.onnx");
  std::filesystem::current_path(before);
  EXPECT_EQ(model.graph.initializers.size(), 1u);
}

TEST(OnnxExternal, AbsolutePath) {
  const Place place;
  place.refuse(external((place.folder / "secret").string()), "not a relative path");
  place.refuse(external((place.folder / "model/w.bin").string()), "not a relative path");
  place.refuse(external(""), "not a relative path");
}

TEST(OnnxExternal, ParentFolder) {
  const Place place;
  for (const char* location : {"../secret", "sub/../../secret", "sub/../w.bin", "..", "sub/.."})
    place.refuse(external(location), "leaves the model's folder");
}

TEST(OnnxExternal, SymbolicLink) {
  const Place place;
  std::filesystem::create_symlink("../secret", place.folder / "model/link");
  std::filesystem::create_directory_symlink("..", place.folder / "model/up");
  place.refuse(external("link"), "symbolic link");
  place.refuse(external("up/secret"), "symbolic link");
}

TEST(OnnxExternal, HardLink) {
  const Place place;
  std::filesystem::create_hard_link(place.folder / "secret", place.folder / "model/hard");
  place.refuse(external("hard"), "hard link");
}

TEST(OnnxExternal, BeyondTheFile) {
  const Place place;
  place.refuse(external("w.bin", entry("offset", "8")), "ends at byte 12");
  place.refuse(external("w.bin", entry("offset", "18446744073709551615")), "ends at byte 12");
  place.refuse(external("w.bin", "", 1LL << 40), "ends at byte 12");
  place.refuse(external("w.bin", entry("length", "12")), "length does not fit");
  place.refuse(external("w.bin", entry("offset", "-4")), "'-4' is not a size");
  place.refuse(external("w.bin", entry("length", "8x")), "'8x' is not a size");
}

TEST(OnnxExternal, NotAFile) {
  const Place place;
  place.refuse(external("sub"), "is a folder");
  place.refuse(external("sub/"), "names no file");
  place.refuse(external("none.bin"), "'none.bin': cannot be opened");
  place.refuse(external(std::string("w.bin\0x", 7)), "external data");
}

}  // namespace
}  // namespace zsq::formats::onnx
