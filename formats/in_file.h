// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "core/error.h"

namespace zsq::formats {

// Runs a reader and puts the file's name before what it complains about.
template <class Function>
auto in_file(const std::filesystem::path& path, Function&& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw Error(error.code(), path.string() + ": " + error.what());
  }
}

}  // namespace zsq::formats
