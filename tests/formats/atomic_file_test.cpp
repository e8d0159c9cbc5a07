// SPDX-License-Identifier: Apache-2.0
#include "formats/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/formats/helpers.h"

namespace zsq::formats {
namespace {

std::size_t files_in(const TempFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(AtomicFile, ReplacesWhole) {
  const TempFolder folder;
  write_atomically(folder / "x", "first, and longer");
  write_atomically(folder / "x", "second");
  EXPECT_EQ(read_text(folder / "x"), "second");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFile, NothingRemainsWithoutCommit) {
  const TempFolder folder;
  write_atomically(folder / "x", "old");
  {
    AtomicFile file(folder / "x");
    file.write("new");
    EXPECT_EQ(read_text(folder / "x"), "old");
    EXPECT_EQ(files_in(folder), 2u);
  }
  EXPECT_EQ(read_text(folder / "x"), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

// A limit on file sizes stands for a full disk.
TEST(AtomicFile, FailedWriteKeepsTheOldFile) {
  const TempFolder folder;
  write_atomically(folder / "x", "old");
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error([&] { write_atomically(folder / "x", std::string(5000, 'n')); },
               ErrorCode::bad_input, (folder / "x").string());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text(folder / "x"), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFile, ErrorsNameThePath) {
  const TempFolder folder;
  expect_error([&] { write_atomically(folder / "none/x", "y"); }, ErrorCode::bad_input, "none/x");
  expect_error([&] { write_atomically(folder.path(), "y"); }, ErrorCode::bad_input,
               folder.path().string());
  expect_error([&] { read_file(folder / "none"); }, ErrorCode::bad_input, "none: cannot be opened");
  expect_error([&] { read_file(folder.path()); }, ErrorCode::bad_input, "is a folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error([&] { read_file(folder / "pipe"); }, ErrorCode::bad_input, "not a regular file");
}

// The test vectors of FIPS 180-2.
TEST(AtomicFile, Sha256AndSha1) {
  const TempFolder folder;
  EXPECT_EQ(sha256_of_file(folder.file("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_file(folder.file("a", std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  const std::string two_blocks = std::string(1 << 20, 'a') + "b";
  EXPECT_NE(sha256_of_file(folder.file("b", two_blocks)),
            sha256_of_file(folder.file("c", two_blocks.substr(1) + "c")));
  EXPECT_EQ(sha1_of_file(folder / "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

}  // namespace
}  // namespace zsq::formats
