// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {

std::vector<std::byte> encode_png(const Image&) {
  throw Error(ErrorCode::bad_input,
              "this program was built without an image encoder; build it with -DZSQ_OPENCV=ON, or "
              "take another form than png");
}

}  // namespace zsq::eval
