// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/permutations.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace zsq::exporters::ncnn {
namespace {

using namespace std::string_view_literals;

// Dimensions of the input from the innermost on, as the table of Permute in ncnn's list of
// operators names them: W, H, [D,] C; the place in the list is the number.
constexpr std::array k2{"WH"sv, "HW"sv};
constexpr std::array k3{"WHC"sv, "HWC"sv, "WCH"sv, "CWH"sv, "HCW"sv, "CHW"sv};
constexpr std::array k4{"WHDC"sv, "HWDC"sv, "WDHC"sv, "DWHC"sv, "HDWC"sv, "DHWC"sv,
                        "WHCD"sv, "HWCD"sv, "WCHD"sv, "CWHD"sv, "HCWD"sv, "CHWD"sv,
                        "WDCH"sv, "DWCH"sv, "WCDH"sv, "CWDH"sv, "DCWH"sv, "CDWH"sv,
                        "HDCW"sv, "DHCW"sv, "HCDW"sv, "CHDW"sv, "DCHW"sv, "CDHW"sv};

}  // namespace

std::int64_t permutation(const std::vector<std::int64_t>& order) {
  const std::size_t n = order.size();
  const std::span<const std::string_view> table = n == 2   ? std::span<const std::string_view>(k2)
                                                  : n == 3 ? std::span<const std::string_view>(k3)
                                                           : std::span<const std::string_view>(k4);
  if (n < 2 || n > 4)
    throw Error(ErrorCode::unsupported_model,
                "ncnn has no permutation of " + std::to_string(n) + " dimensions");
  std::string name(n, ' ');
  for (std::size_t i = 0; i < n; ++i)
    name[n - 1 - i] = table[0][n - 1 - static_cast<std::size_t>(order[i])];
  return std::find(table.begin(), table.end(), name) - table.begin();
}

}  // namespace zsq::exporters::ncnn
