// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/boundary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

Error error_of(const std::function<void()>& action) {
  try {
    at_boundary([&] { action(); });
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "no Error was thrown"};
}

TEST(Boundary, MemoryThatRanOutIsSaid) {
  EXPECT_EQ(error_of([] { throw std::bad_alloc(); }).code(), ErrorCode::out_of_memory);
  const Error error = error_of([] { at::empty({std::int64_t{1} << 50}); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  // oneDNN's words if the code of an operator finds no memory.
  EXPECT_EQ(error_of([] { throw std::runtime_error("could not create a primitive"); }).code(),
            ErrorCode::out_of_memory);
  EXPECT_THROW(at_boundary([] { throw std::invalid_argument("stoi"); }), std::invalid_argument);
}

TEST(Boundary, OtherFailuresOfLibtorchAreOneLineInOurWords) {
  const Error error = error_of([] { at::mm(at::empty({2, 3}), at::empty({2, 3})); });
  EXPECT_EQ(error.code(), ErrorCode::internal);
  const std::string text = error.what();
  EXPECT_EQ(text.find("mat1"), std::string::npos) << text;
  EXPECT_NE(text.find("report it"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(Boundary, APathThatTheSystemRefusesIsNamed) {
  const std::string path(5000, 'x');  // longer than any file system takes
  const Error error = error_of([&] { static_cast<void>(std::filesystem::exists(path)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_input);
  EXPECT_NE(std::string(error.what()).find("xxx': "), std::string::npos) << error.what();
}

TEST(Boundary, OurOwnErrorsAndValuesPassThrough) {
  EXPECT_EQ(error_of([] { throw Error(ErrorCode::stopped, "x"); }).code(), ErrorCode::stopped);
  EXPECT_EQ(at_boundary([] { return 7; }), 7);
}

}  // namespace
}  // namespace zsq::pipeline
