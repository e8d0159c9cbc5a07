// SPDX-License-Identifier: Apache-2.0
// What is said of a file that holds weights and no network.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "models/load.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::models {
namespace {

class WeightsOnly : public testing::Test {
 protected:
  std::string refusal(ErrorCode code, const std::map<std::string, std::string>& metadata,
                      const std::string& arch = "") const {
    const auto path = folder_ / "net.safetensors";
    formats::write_safetensors(path,
                               {{{"conv.weight", to_array(at::ones({2, 3, 1, 1}))}}, metadata});
    return test::error_message(code, [&] { load(path, {.arch = arch}); });
  }
  test::TempFolder folder_;
};

std::size_t place(const std::string& text, const std::string& part) {
  const auto found = text.find(part);
  EXPECT_NE(found, std::string::npos) << part << " in " << text;
  return found;
}

// Names of 80 networks that this is not help nobody.
void expect_to_trace_first(const std::string& message) {
  const auto trace = place(message, "torch.jit.trace(model.eval(), x).save(");
  EXPECT_LT(trace, place(message, "--arch"));
  EXPECT_EQ(message.find("shufflenet"), std::string::npos) << message;
  place(message, "--list_archs");
  EXPECT_LT(message.size(), 800U);
}

TEST_F(WeightsOnly, AreToBeTraced) {
  expect_to_trace_first(refusal(ErrorCode::bad_input, {}));
  const auto noted = refusal(ErrorCode::bad_input, {{"arch", "my_unet"}});
  expect_to_trace_first(noted);
  place(noted, "my_unet");
}

TEST_F(WeightsOnly, OfAnUnknownArchitectureToo) {
  const auto message = refusal(ErrorCode::usage, {}, "resnet200d");
  expect_to_trace_first(message);
  place(message, "'resnet200d' is no built-in architecture");
  place(message, "(near: resnet");
}

}  // namespace
}  // namespace zsq::models
