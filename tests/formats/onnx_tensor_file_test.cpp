// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_tensor_file.h"

#include <gtest/gtest.h>

#include "tests/formats/helpers.h"

namespace zsq::formats::onnx {
namespace {

// dims 1, 2; data_type FLOAT; raw_data of 8 bytes: fields 1, 2 and 9 of TensorProto.
TEST(OnnxTensorFile, WritesExactlyTheseBytes) {
  const TempFolder folder;
  write_tensor(folder / "input_0.pb", make_array<float>(DType::f32, {1, 2}, {1.5f, -2}));
  EXPECT_EQ(read_text(folder / "input_0.pb"),
            "\x08\x01\x08\x02\x10\x01\x4a\x08" + raw(1.5f) + raw(-2.0f));
}

}  // namespace
}  // namespace zsq::formats::onnx
