// SPDX-License-Identifier: Apache-2.0
// Somebody else's program: every public header, and one call that needs all of the library.
#include <cstdio>
#include <cstring>

#include "pipeline/bench.h"
#include "pipeline/evaluate.h"
#include "pipeline/inspect.h"
#include "pipeline/quantize.h"
#include "pipeline/run.h"
#include "pipeline/version.h"

int main() {
  zsq::QuantizeOptions options;
  options.scheme = zsq::Scheme::parse("w4a4");
  std::printf("zsq %s, recipe %s\n", zsq::version().c_str(), options.recipe.name.c_str());
  try {
    zsq::quantize("no_such_file.onnx", options, "consumer_output");
  } catch (const zsq::Error& error) {
    std::printf("as expected: %s\n", error.what());
    return std::strstr(error.what(), "no_such_file.onnx") ? 0 : 1;
  }
  return 1;
}
