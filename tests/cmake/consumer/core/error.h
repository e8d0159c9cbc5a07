// SPDX-License-Identifier: Apache-2.0
// Named like a header of zsq: neither program nor library may get the other one.
#pragma once

namespace consumer {
constexpr int kSuccess = 0;
}
