// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace zsq::pipeline {

using Json = nlohmann::ordered_json;

// Names come from model files and need not be UTF-8: what is not is replaced. indent -1: one line.
inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Text that is JSON already; null if there is none.
inline Json json_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json::parse(text);
}

}  // namespace zsq::pipeline
