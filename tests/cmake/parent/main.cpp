// SPDX-License-Identifier: Apache-2.0
#include <zsq/pipeline/quantize.h>

int main() { return zsq::Scheme::parse("W4A4").weight_bits == 4 ? 0 : 1; }
