// SPDX-License-Identifier: Apache-2.0
// BT.601 in limited range: how RGB from 0 to 255 becomes luma and chroma, and back.
//   Y = kLuma . RGB + 16,   Cb = kCb . RGB + 128,   Cr = kCr . RGB + 128
//   R = g + kRedOfCr (Cr - 128),   G = g - kGreenOfCb (Cb - 128) - kGreenOfCr (Cr - 128),
//   B = g + kBlueOfCb (Cb - 128),  g = kGrey (Y - 16)
#pragma once
#include <array>

namespace zsq::bt601 {

inline constexpr std::array kLuma{0.256788, 0.504129, 0.097906};
inline constexpr std::array kCb{-0.148223, -0.290993, 0.439216};
inline constexpr std::array kCr{0.439216, -0.367788, -0.071427};
inline constexpr double kBlack = 16, kNoColour = 128;
inline constexpr double kGrey = 1.164383;
inline constexpr double kRedOfCr = 1.596027, kGreenOfCb = 0.391762, kGreenOfCr = 0.812968,
                        kBlueOfCb = 2.017232;

}  // namespace zsq::bt601
