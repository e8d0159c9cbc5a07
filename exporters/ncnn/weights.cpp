// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "exporters/ncnn/net.h"

namespace zsq::exporters::ncnn {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint32_t kInt8 = 0x000D4B38, kFloat32 = 0;
constexpr std::size_t kAlignment = 4;

template <class T>
void append(std::string& bytes, std::span<const T> values) {
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size_bytes());
  if (!values.empty()) std::memcpy(bytes.data() + at, values.data(), values.size_bytes());
}

void append_tag(std::string& bytes, std::uint32_t tag) {
  append(bytes, std::span<const std::uint32_t>(&tag, 1));
}

}  // namespace

void Weights::add_codes(std::span<const std::int8_t> codes) {
  append_tag(bytes_, kInt8);
  append(bytes_, codes);
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
}

void Weights::add_tagged(std::span<const float> values) {
  append_tag(bytes_, kFloat32);
  add(values);
}

void Weights::add(std::span<const float> values) { append(bytes_, values); }

}  // namespace zsq::exporters::ncnn
