// SPDX-License-Identifier: Apache-2.0
#include "formats/foreign_format.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "formats/zip_archive.h"

namespace zsq::formats {
namespace {

constexpr const char* kOfKeras =
    "; zsq reads ONNX, which tf2onnx makes of it: docs/formats.md (\"Networks without BatchNorm\") "
    "has the lines of Python, and those that keep its BatchNorm";

bool is_keras_archive(const std::filesystem::path& path) {
  const ZipArchive zip(path);
  return zip.find("config.json") && std::ranges::any_of(zip.entries(), [](const auto& entry) {
           return entry.name.ends_with(".weights.h5");
         });
}

}  // namespace

std::string foreign_format(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path))
    return std::filesystem::exists(path / "saved_model.pb")
               ? "is a SavedModel of TensorFlow; zsq reads ONNX: python -m tf2onnx.convert "
                 "--saved-model " +
                     path.string() + " --opset 17 --output net.onnx"
               : "";
  std::array<char, 8> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  const std::string_view start(head.data(), head.size());
  if (start == "\x89HDF\r\n\x1a\n")
    return std::string("is an HDF5 file (.h5), as Keras writes them") + kOfKeras;
  if (start.substr(4) == "TFL3")
    return "is a file for LiteRT (.tflite), which zsq writes but does not read; zsq reads ONNX: "
           "python -m tf2onnx.convert --tflite " +
           path.string() +
           " --opset 17 --output net.onnx makes it of a float one (docs/formats.md, \"Networks "
           "without BatchNorm\")";
  if (start.starts_with("PK\x03\x04") && is_keras_archive(path))
    return std::string("is a model of Keras (.keras)") + kOfKeras;
  return "";
}

}  // namespace zsq::formats
