// SPDX-License-Identifier: Apache-2.0
// Finds the state dict in an unpickled checkpoint.
#pragma once
#include "formats/pickle.h"
#include "formats/strided.h"

namespace zsq::formats {

// Names without "module.". Error(bad_input) if there is no state dict.
NamedViews find_state_dict(const PickleValue& root);

// What a value of the kind `tensor` describes.
StridedView view_of(const PickleValue& tensor);

// Adds it. Error(bad_input): a name longer than kMaxName, or more than kMaxTensors.
void add_view(const std::string& name, const PickleValue& tensor, NamedViews& views);

}  // namespace zsq::formats
