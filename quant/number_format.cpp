// SPDX-License-Identifier: Apache-2.0
#include "quant/number_format.h"

#include <string>

#include "core/error.h"

namespace zsq::quant {

void require_uniform(NumberFormat format, std::string_view method) {
  if (format != NumberFormat::level_table) return;
  throw Error(ErrorCode::unsupported_model,
              std::string(method) +
                  " needs levels at equal distances; these weights have a table of levels");
}

}  // namespace zsq::quant
