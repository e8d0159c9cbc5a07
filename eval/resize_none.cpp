// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {

Image resize_opencv(const Image&, std::int64_t, std::int64_t, Interpolation) {
  throw Error(ErrorCode::bad_input,
              "data.resizer=opencv: this program was built without OpenCV; build it with "
              "-DZSQ_OPENCV=ON, or take data.resizer=pillow");
}

}  // namespace zsq::eval
