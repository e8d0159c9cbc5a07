// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "formats/safetensors.h"
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

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

std::span<const std::byte> bytes_of(const at::Tensor& host) {
  return {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()};
}

DType dtype_of(const at::Tensor& tensor) {
  for (const auto& [dtype, type] : kTypes)
    if (type == tensor.scalar_type()) return dtype;
  throw Error(ErrorCode::internal,
              std::string("no array type for a tensor of ") + at::toString(tensor.scalar_type()));
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
  const auto host = on_host(tensor);
  const auto bytes = bytes_of(host);
  return {dtype_of(host), host.sizes().vec(), {bytes.begin(), bytes.end()}};
}

void write_tensors(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  auto order = tensors;
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const auto& entry) { return entry.second.element_size(); });
  std::vector<formats::SafetensorsWriter::Tensor> described;
  for (const auto& [name, tensor] : order)
    described.push_back({name, dtype_of(tensor), tensor.sizes().vec()});
  formats::SafetensorsWriter writer(path, described, metadata);
  for (const auto& [name, tensor] : order) {
    const auto host = on_host(tensor);
    writer.write(bytes_of(host));
  }
  writer.commit();
}

}  // namespace zsq::models
