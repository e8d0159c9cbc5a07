// SPDX-License-Identifier: Apache-2.0
// Finds the state dict in an unpickled checkpoint and makes its tensors dense.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/array.h"
#include "formats/pickle.h"

namespace zsq::formats {

using NamedTensors = std::vector<std::pair<std::string, const PickleValue*>>;

// Names without "module."; the values are tensors. Error(bad_input) if there is no state dict.
NamedTensors find_state_dict(const PickleValue& root);

// All bytes of a storage, exactly as many as it declares.
using StorageReader = std::function<std::vector<std::byte>(const PickleValue& storage)>;

// `file_size` bounds what may be allocated in total: shared storages may be copied, not multiplied
// without end.
NamedArrays make_dense(const NamedTensors& tensors, const StorageReader& read,
                       std::uint64_t file_size);

}  // namespace zsq::formats
