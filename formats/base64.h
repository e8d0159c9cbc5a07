// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace zsq::formats {

// RFC 4648, with padding and without line breaks.
std::string base64(std::span<const std::byte> bytes);

}  // namespace zsq::formats
