// SPDX-License-Identifier: Apache-2.0
#include "pipeline/verdict.h"

#include <cstdio>

#include "pipeline/held_out.h"

namespace zsq::pipeline {

std::string verdict_on(const std::vector<SyntheticResult>& synthetic) {
  if (synthetic.empty()) return "";
  const auto all = pool(synthetic);
  char text[200];
  std::snprintf(text, sizeof text, "KL %.4f nats per image", all.divergence);
  return text;
}

}  // namespace zsq::pipeline
