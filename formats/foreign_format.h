// SPDX-License-Identifier: Apache-2.0
// Models of frameworks whose files are not read, and what reads them.
#pragma once
#include <filesystem>
#include <string>

namespace zsq::formats {

// "is a model of Keras (.keras); ...": what the file or folder is by its content, and how it
// becomes ONNX. Empty if it is none of TensorFlow's. Error(bad_input): a damaged zip archive.
std::string foreign_format(const std::filesystem::path& path);

}  // namespace zsq::formats
