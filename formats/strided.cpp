// SPDX-License-Identifier: Apache-2.0
#include "formats/strided.h"

#include <cstring>
#include <set>
#include <string_view>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

// Bytes of the dense tensor, after checking that every element lies inside the storage.
std::size_t check_view(const StridedView& view) {
  const auto outside = [] {
    return Error(ErrorCode::bad_input, "reaches outside of its storage, or repeats elements of it");
  };
  const std::int64_t total = view.elements;
  const std::size_t bytes = byte_count(view.dtype, view.shape);
  if (view.offset < 0 || view.offset > total || view.strides.size() != view.shape.size() ||
      bytes / size_of(view.dtype) > static_cast<std::uint64_t>(total))
    throw outside();
  if (bytes == 0) return 0;
  std::int64_t room = total - view.offset - 1;  // how far beyond the first element the last may lie
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const std::int64_t steps = view.shape[i] - 1, stride = view.strides[i];
    if (stride < 0 || (steps > 0 && stride > room / steps)) throw outside();
    room -= steps * stride;
  }
  if (room < 0) throw outside();
  return bytes;
}

// Copies along the last dimension in one go where it is contiguous.
void gather(const StridedView& view, std::size_t dimension, const std::byte* from,
            std::size_t element, std::byte*& to) {
  if (dimension == view.shape.size()) {
    std::memcpy(to, from, element);
    to += element;
    return;
  }
  const auto size = static_cast<std::size_t>(view.shape[dimension]);
  const auto stride = static_cast<std::size_t>(view.strides[dimension]);
  if (dimension + 1 == view.shape.size() && stride == 1) {
    std::memcpy(to, from, size * element);
    to += size * element;
    return;
  }
  for (std::size_t i = 0; i < size; ++i)
    gather(view, dimension + 1, from + i * stride * element, element, to);
}

}  // namespace

std::uint64_t storage_bytes(const StridedView& view) {
  const std::int64_t shape[] = {view.elements};
  return byte_count(view.dtype, shape);
}

NamedArrays make_dense(const NamedViews& views, const StorageReader& read,
                       std::uint64_t file_size) {
  NamedArrays arrays;
  std::set<std::string_view> names;
  std::uint64_t total = 0;
  const StridedView* loaded = nullptr;  // neighbours often share a storage
  std::vector<std::byte> bytes;
  for (const auto& [name, view] : views) {
    try {
      if (!names.insert(name).second) throw Error(ErrorCode::bad_input, "occurs twice");
      const std::size_t size = check_view(view);
      total += size;
      if (total / kMaxStorageCopies > file_size)
        throw Error(ErrorCode::bad_input, "multiplies the size of the file");
      if (!loaded || loaded->storage != view.storage || loaded->dtype != view.dtype ||
          loaded->elements != view.elements)
        bytes = read(view);
      loaded = &view;
      Array array = {view.dtype, view.shape, std::vector<std::byte>(size)};
      const std::size_t element = size_of(array.dtype);
      std::byte* to = array.data.data();
      if (size)
        gather(view, 0, bytes.data() + static_cast<std::size_t>(view.offset) * element, element,
               to);
      arrays.emplace_back(name, std::move(array));
    } catch (const Error& error) {
      throw Error(error.code(), "tensor '" + name + "': " + error.what());
    }
  }
  return arrays;
}

}  // namespace zsq::formats
