// SPDX-License-Identifier: Apache-2.0
// The result of `zsq inspect --doctor` for people.
#pragma once
#include "pipeline/doctor.h"

namespace zsq::cli {

void print_doctor(const DoctorReport& report);

}  // namespace zsq::cli
