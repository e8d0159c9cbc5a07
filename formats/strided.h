// SPDX-License-Identifier: Apache-2.0
// Tensors as PyTorch stores them: strided views of storages, made dense here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/array.h"

namespace zsq::formats {

struct StridedView {
  std::string storage;  // its name in the file
  DType dtype = DType::f32;
  std::int64_t elements = 0;  // of the whole storage
  std::int64_t offset = 0;    // in elements, as the sizes and strides
  std::vector<std::int64_t> shape, strides;
};

using NamedViews = std::vector<std::pair<std::string, StridedView>>;

// All bytes of a view's storage, exactly as many as storage_bytes() says.
using StorageReader = std::function<std::vector<std::byte>(const StridedView& view)>;
std::uint64_t storage_bytes(const StridedView& view);

// `file_size` bounds what may be allocated in total: shared storages may be copied, not multiplied
// without end. Error(bad_input) if a view reaches outside of its storage or a name occurs twice.
NamedArrays make_dense(const NamedViews& views, const StorageReader& read, std::uint64_t file_size);

}  // namespace zsq::formats
