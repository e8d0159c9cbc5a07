// SPDX-License-Identifier: Apache-2.0
// What an output means by what a user says of it (LoadOptions::outputs).
#pragma once
#include <map>
#include <string>

#include "models/outputs.h"

namespace zsq::models::onnx {

// `output`: as the end of the network tells it. What is said under its name counts, else under "",
// else its own kind. Logits with places are a map. Error(usage): said to be a map without two
// classes or places, or logits of one number, of which no decision could differ.
OutputKind meaning_of(const Output& output, const std::map<std::string, OutputKind>& said);

}  // namespace zsq::models::onnx
