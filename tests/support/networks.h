// SPDX-License-Identifier: Apache-2.0
// Networks that PyTorch exported, with the outputs that they have to give, and real images:
// tests/networks/make_networks.py says what is there. ctest makes them before the tests that need
// them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace zsq::test {

inline std::filesystem::path network_path(const std::string& relative) {
  return std::filesystem::path(ZSQ_SOURCE_DIR) / "build/networks" / relative;
}

}  // namespace zsq::test

#define ZSQ_SKIP_WITHOUT_NETWORKS()                                       \
  if (!std::filesystem::exists(zsq::test::network_path("made_from.txt"))) \
  GTEST_SKIP() << "needs build/networks: run scripts/install_deps.sh, then ctest -R make_networks"
