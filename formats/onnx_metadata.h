// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace zsq::formats::onnx {

// metadata_props alone; the network is not looked at. Error(bad_input): a damaged file.
std::map<std::string, std::string> read_metadata(const std::filesystem::path& path);

}  // namespace zsq::formats::onnx
