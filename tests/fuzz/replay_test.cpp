// SPDX-License-Identifier: Apache-2.0
// Inputs that once were findings, and need no fuzzer to be tried again: regressions/<target>/.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/zip_archive.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {
namespace {

const std::map<std::string, void (*)(File)>& targets() {
  static const std::map<std::string, void (*)(File)> all{{"cifar", cifar},
                                                         {"coco", coco},
                                                         {"image", image},
                                                         {"model", model},
                                                         {"npy", npy},
                                                         {"npz", npz},
                                                         {"onnx", onnx},
                                                         {"pt2", pt2},
                                                         {"pth", pth},
                                                         {"recipe", recipe},
                                                         {"safetensors", safetensors},
                                                         {"table", table},
                                                         {"torchscript", torchscript}};
  return all;
}

std::vector<std::filesystem::path> stored() {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(ZSQ_SOURCE_DIR) / "tests/fuzz/regressions";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Regression : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Regression, IsReadOrRefused) {
  const auto target = GetParam().parent_path().filename().string();
  ASSERT_TRUE(targets().contains(target)) << "no target is named " << target;
  EXPECT_NO_THROW(feed(targets().at(target), formats::read_file(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Regression, testing::ValuesIn(stored()), [](const auto& info) {
  auto name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// That a finding is one: what a reader must not throw passes through feed().
TEST(Feed, OnlyErrorsThatBlameTheFilePass) {
  const std::vector<std::byte> bytes(3);
  EXPECT_NO_THROW(feed([](File) { throw Error(ErrorCode::bad_input, "x"); }, bytes));
  EXPECT_NO_THROW(feed([](File) { throw Error(ErrorCode::unsupported_model, "x"); }, bytes));
  EXPECT_THROW(feed([](File) { throw Error(ErrorCode::internal, "x"); }, bytes), std::logic_error);
  EXPECT_THROW(feed([](File) { throw std::bad_alloc(); }, bytes), std::bad_alloc);
}

TEST(Feed, TextStandsForAnArchive) {
  static std::string seen;
  const std::string text = "@zip\n\n@entry a\nx\ny\n@entry b\n\n@entry c\nz";
  feed(
      [](File file) {
        const formats::ZipArchive archive(file);
        for (const auto& entry : archive.entries()) {
          const auto bytes = archive.read(entry);
          seen += entry.name + "=";
          for (const auto byte : bytes) seen += static_cast<char>(byte);
          seen += ";";
        }
      },
      std::as_bytes(std::span(text)));
  EXPECT_EQ(seen, "a=x\ny;b=;c=z;");
}

}  // namespace
}  // namespace zsq::fuzz
