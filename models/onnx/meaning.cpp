// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/meaning.h"

#include <c10/util/ArrayRef.h>
#include <c10/util/StringUtil.h>

#include "core/error.h"

namespace zsq::models::onnx {
namespace {

// Error(usage) for classes that there are none of: one class is always the decision.
void require_classes_of(OutputKind kind, const Output& output) {
  const bool is_map = kind == OutputKind::map;
  if (!is_map && kind != OutputKind::logits) return;
  const auto classes = is_map && !output.shape.empty()
                           ? output.shape[static_cast<std::size_t>(output.axis) - 1]
                           : output.length();
  if (classes > 1 && (!is_map || output.has_places())) return;
  throw Error(ErrorCode::usage,
              "the output '" + output.name + "' has shape " +
                  c10::str(at::IntArrayRef(output.shape)) + " for each image, so it cannot be " +
                  (is_map ? "a map (model.output): two classes or more at several places were "
                            "expected, as [classes, height, width]"
                          : "logits (model.output): two classes or more were expected") +
                  "; it can be " +
                  (is_map && output.length() > 1 && !output.has_places() ? "logits, " : "") +
                  "scores (labels, each on or off) or values");
}

}  // namespace

OutputKind meaning_of(const Output& output, const std::map<std::string, OutputKind>& said) {
  for (const auto& key : {output.name, std::string()}) {
    const auto asked = said.find(key);
    if (asked == said.end()) continue;
    const bool is_map = asked->second == OutputKind::logits && output.has_places();
    const auto kind = is_map ? OutputKind::map : asked->second;
    require_classes_of(kind, output);
    return kind;
  }
  return output.kind;
}

}  // namespace zsq::models::onnx
