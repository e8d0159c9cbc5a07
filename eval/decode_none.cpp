// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {

Image decode_image(std::span<const std::byte>, const std::string& name, Decoder) {
  throw Error(ErrorCode::bad_input,
              name +
                  ": this program was built without an image decoder; build it with "
                  "-DZSQ_OPENCV=ON, or pass the images as npz");
}

std::string decoder_name() { return "none"; }

}  // namespace zsq::eval
