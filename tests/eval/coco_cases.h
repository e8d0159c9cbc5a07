// SPDX-License-Identifier: Apache-2.0
// Written by coco_cases.py with pycocotools 2.0.11.
#pragma once
#include <array>
#include <cstdint>

namespace zsq::eval {

struct CocoCase {
  std::uint64_t seed;
  std::int64_t images, categories;
  std::array<double, 7> measures;  // as BoxMeasures has them
};
inline constexpr CocoCase kCocoCases[] = {
    {1,
     6,
     3,
     {16.1948866261494, 40.5458316573358, 7.49895998003162, 46.8037518037518, 7.89407512179789,
      33.0767257398009, 26.8186116956643}},
    {2,
     25,
     5,
     {8.65899093516597, 22.5251774651633, 3.94096074492199, 31.447619047619, 5.54838254325792,
      21.2742089671131, 17.1238709585244}},
    {3,
     60,
     2,
     {8.03218685757877, 20.6288494536474, 3.97559036915976, 30.4500695088045, 3.86188023480329,
      12.0999145248553, 20.4594795922028}},
};

}  // namespace zsq::eval
