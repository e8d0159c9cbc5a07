// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <cstring>

#include "core/error.h"
#include "models/load.h"

namespace zsq::models {
namespace {

using formats::DType;

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::f16, at::kHalf},    {DType::bf16, at::kBFloat16}, {DType::f32, at::kFloat},
    {DType::f64, at::kDouble},  {DType::u8, at::kByte},       {DType::i8, at::kChar},
    {DType::u16, at::kUInt16},  {DType::i16, at::kShort},     {DType::i32, at::kInt},
    {DType::u32, at::kUInt32},  {DType::i64, at::kLong},      {DType::u64, at::kUInt64},
    {DType::boolean, at::kBool}};

// Two elements a byte, the first in the low four bits.
at::Tensor unpacked(const formats::Array& array) {
  formats::require_consistent("", array);
  auto tensor = at::empty(array.shape, at::kByte);
  auto* to = tensor.mutable_data_ptr<std::uint8_t>();
  const auto from = array.as<std::uint8_t>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    to[i] = static_cast<std::uint8_t>(from[static_cast<std::size_t>(i / 2)] >> 4 * (i % 2) & 15);
  return tensor;
}

}  // namespace

at::Tensor to_tensor(const formats::Array& array) {
  if (array.dtype == DType::u4) return unpacked(array);
  for (const auto& [dtype, type] : kTypes) {
    if (dtype != array.dtype) continue;
    auto tensor = at::empty(array.shape, at::TensorOptions(type));
    if (tensor.nbytes() != array.data.size()) {
      throw Error(ErrorCode::bad_input, "an array of " + std::to_string(array.data.size()) +
                                            " bytes cannot have shape " +
                                            c10::str(at::IntArrayRef(array.shape)));
    }
    if (!array.data.empty()) std::memcpy(tensor.data_ptr(), array.data.data(), array.data.size());
    return tensor;
  }
  throw Error(ErrorCode::internal, "no tensor type for this array");
}

formats::Array to_array(const at::Tensor& tensor) {
  const auto host = tensor.detach().to(at::kCPU).contiguous();
  for (const auto& [dtype, type] : kTypes) {
    if (type != host.scalar_type()) continue;
    const auto* bytes = static_cast<const std::byte*>(host.data_ptr());
    return {dtype, host.sizes().vec(), {bytes, bytes + host.nbytes()}};
  }
  throw Error(ErrorCode::internal,
              std::string("no array type for a tensor of ") + at::toString(host.scalar_type()));
}

}  // namespace zsq::models
