// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "generator/canvas.h"

namespace zsq::generator {

// One to four lines of 2 to 15 letters of no script: each two to four strokes, bars and rings, 2.5
// to 20 % of the side high; more often than not on a plate of their own.
void paint_text(Canvas& canvas);

}  // namespace zsq::generator
