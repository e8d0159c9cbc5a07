// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/tensor_in_file.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::train {
namespace {

// Of this process, mapped from a file that has this folder in its name.
bool is_mapped_from(const std::filesystem::path& folder) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(folder.string()) != std::string::npos) return true;
  return false;
}

std::string refusal(const std::filesystem::path& folder, std::int64_t values) {
  return test::error_message(ErrorCode::bad_input,
                             [&] { tensor_in_file(folder, {values}, at::kFloat); });
}

// Files may not become longer than this while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(TensorInFile, HoldsValuesAndLeavesNothing) {
  const test::TempFolder folder;
  {
    const auto tensor = tensor_in_file(folder.path(), {3, 5, 7}, at::kBFloat16);
    EXPECT_EQ(tensor.sizes(), at::IntArrayRef({3, 5, 7}));
    EXPECT_EQ(tensor.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(tensor.eq(0).all().item<bool>());
    EXPECT_TRUE(is_mapped_from(folder.path()));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    const auto values = at::arange(105, at::kBFloat16).view({3, 5, 7});
    tensor.copy_(values);
    EXPECT_TRUE(tensor.equal(values));
  }
  EXPECT_FALSE(is_mapped_from(folder.path()));
}

TEST(TensorInFile, SaysWhereThereIsNoRoom) {
  const test::TempFolder folder;
  const FileSizeLimit limit(1 << 20);
  tensor_in_file(folder.path(), {1 << 10}, at::kFloat);
  const auto message = refusal(folder.path(), 1 << 20);
  EXPECT_NE(message.find(folder.path().string() + ": no room for a file of 4 MiB"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("reconstruct.memory"), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TensorInFile, SaysThatThereIsNoFolder) {
  const test::TempFolder folder;
  EXPECT_NE(refusal(folder / "none", 1).find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace zsq::train
