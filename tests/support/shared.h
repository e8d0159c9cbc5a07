// SPDX-License-Identifier: Apache-2.0
// Large real inputs live beside the repository, not in it; a test that needs one skips without it.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace zsq::test {

inline std::filesystem::path shared_path(const std::string& relative) {
  const char* root = std::getenv("ZSQ_SHARED");
  return (root ? std::filesystem::path(root)
               : std::filesystem::path(ZSQ_SOURCE_DIR) / "../shared") /
         relative;
}

}  // namespace zsq::test

#define ZSQ_SKIP_WITHOUT(path)        \
  if (!std::filesystem::exists(path)) \
  GTEST_SKIP() << "needs " << (path).string() << "; set ZSQ_SHARED"
