// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zsq {

// The known name with the smallest edit distance to `name`, one that begins with `name` before all
// others; empty if none is close enough to be a likely misspelling (distance above a third of the
// longer length).
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// "'x' is not a <kind>; did you mean 'y'? Known: a, b, c" - for every unknown-name error.
std::string unknown_name_message(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known);

}  // namespace zsq
