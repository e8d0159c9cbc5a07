// SPDX-License-Identifier: Apache-2.0
// With ZSQ_TEST_DEVICE=cuda in the environment, what a test makes without naming a device lies on
// the GPU, so that tests written for the CPU run there unchanged: for programs that link
// default_device.cpp.
#pragma once
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace zsq::test {

// Every operator passes by here first.
constexpr auto kDefaultDevice = c10::DispatchKey::TESTING_ONLY_GenericMode;

// While it lives, nothing passes: for tests that name the devices of their tensors.
struct NamedDevices {
  c10::impl::ExcludeDispatchKeyGuard guard{kDefaultDevice};
};

}  // namespace zsq::test
