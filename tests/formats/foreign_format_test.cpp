// SPDX-License-Identifier: Apache-2.0
// What is told of models of TensorFlow, by their content alone.
#include "formats/foreign_format.h"

#include <gtest/gtest.h>

#include "formats/zip_archive.h"
#include "tests/formats/helpers.h"

namespace zsq::formats::foreign_format_test {
namespace {

std::string zip_of(std::initializer_list<const char*> names) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> entries;
  for (const char* name : names) entries.emplace_back(name, std::vector<std::byte>(3));
  const auto zip = make_zip(entries);
  return {reinterpret_cast<const char*>(zip.data()), zip.size()};
}

TEST(ForeignFormat, NamesWhatItIsAndHowItBecomesOnnx) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> files{
      {zip_of({"metadata.json", "config.json", "model.weights.h5"}), "a model of Keras (.keras)"},
      {std::string("\x89HDF\r\n\x1a\n\0\0\0\0", 12), "an HDF5 file (.h5)"},
      {std::string("\x1c\0\0\0TFL3 and so on", 18), "a file for LiteRT (.tflite)"}};
  for (const auto& [bytes, what] : files) {
    const std::string told = foreign_format(folder.file("network.bin", bytes));
    EXPECT_TRUE(told.starts_with("is " + what)) << told;
    EXPECT_NE(told.find("tf2onnx"), std::string::npos) << told;
    EXPECT_NE(told.find("docs/formats.md"), std::string::npos) << told;
  }
  folder.file("saved_model.pb", "");
  EXPECT_TRUE(foreign_format(folder.path()).starts_with("is a SavedModel of TensorFlow"));
}

TEST(ForeignFormat, IsNoneOfOthers) {
  const TempFolder folder;
  for (const std::string& bytes :
       {std::string("\x08\x08\x12\x07pytorch", 11), zip_of({"net/data.pkl", "net/config.json"}),
        zip_of({"config.json"}), std::string()})
    EXPECT_EQ(foreign_format(folder.file("network.bin", bytes)), "");
  EXPECT_EQ(foreign_format(TempFolder().path()), "");
}

}  // namespace
}  // namespace zsq::formats::foreign_format_test
