// SPDX-License-Identifier: Apache-2.0
#include "formats/torchscript.h"

#include "formats/script_syntax.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void torchscript(File file) {
  for (const auto& [name, code] : formats::read_torchscript(file).code) formats::parse_script(code);
}

}  // namespace zsq::fuzz
