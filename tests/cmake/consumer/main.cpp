// SPDX-License-Identifier: Apache-2.0
// Somebody else's program, with a core/error.h of its own and a call that needs the whole library.
#include <zsq/pipeline/bench.h>
#include <zsq/pipeline/evaluate.h>
#include <zsq/pipeline/inspect.h>
#include <zsq/pipeline/quantize.h>
#include <zsq/pipeline/run.h>
#include <zsq/pipeline/version.h>

#include <cstdio>
#include <cstring>

#include "core/error.h"

int main() {
  zsq::QuantizeOptions options;
  options.scheme = zsq::Scheme::parse("w4a4");
  std::printf("zsq %s, recipe %s\n", zsq::version().c_str(), options.recipe.name.c_str());
  try {
    zsq::quantize("no_such_file.onnx", options, "consumer_output");
  } catch (const zsq::Error& error) {
    std::printf("as expected: %s\n", error.what());
    return std::strstr(error.what(), "no_such_file.onnx") ? consumer::kSuccess : 1;
  }
  return 1;
}
