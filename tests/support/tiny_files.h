// SPDX-License-Identifier: Apache-2.0
// The tiny network and its images as files in ZSQ_TEST_FOLDER, which the test's CMakeLists.txt
// defines.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/tiny_network.h"

namespace zsq::test {

// Trained once per build of this test and kept: ctest starts a process for each test.
struct TinyFiles {
  TinyFiles() {
    namespace fs = std::filesystem;
    if (fs::exists(images) && fs::last_write_time(images) > fs::last_write_time("/proc/self/exe"))
      return;
    const TinyNetwork network = train_tiny_network(0);
    const fs::path fresh = folder / std::to_string(getpid());
    fs::create_directories(fresh);
    save_onnx(network.model, fresh / "tiny.onnx");
    save_npz(network.test, fresh / "tiny.npz");
    fs::rename(fresh / "tiny.onnx", model);
    fs::rename(fresh / "tiny.npz", images);
    fs::remove_all(fresh);
  }
  std::filesystem::path folder = ZSQ_TEST_FOLDER;
  std::filesystem::path model = folder / "tiny.onnx", images = folder / "tiny.npz";
};

inline const TinyFiles& tiny() {
  static const TinyFiles files;
  return files;
}

}  // namespace zsq::test
