// SPDX-License-Identifier: Apache-2.0
#include "formats/tfevents.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/event_file.h"

namespace zsq::formats {
namespace {

// RFC 3720, B.4, and the check value of the catalogues.
TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(TfEvents, SayWhatWasWritten) {
  const auto events = test::read_events(
      version_event(12.5) + scalars_event(13.25, 300, {{"fine-tune/loss", 0.125}, {"rate", -2}}) +
      scalars_event(14, std::int64_t{1} << 40, {{"x", 1e-8}}));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].time, 12.5);
  EXPECT_EQ(events[1].time, 13.25);
  EXPECT_EQ(events[1].step, 300);
  EXPECT_EQ(events[1].scalars,
            (std::map<std::string, float>{{"fine-tune/loss", 0.125F}, {"rate", -2.F}}));
  EXPECT_EQ(events[2].step, std::int64_t{1} << 40);
  EXPECT_EQ(events[2].scalars.at("x"), 1e-8F);
}

TEST(TfEvents, ImagesTellTheirSize) {
  using std::string_literals::operator""s;
  const std::string png =
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\x20\x08\2\0\0\0 and the rest"s;  // 258 x 32
  const auto events = test::read_events(image_event(1, 7, "samples", png));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 7);
  EXPECT_EQ(events[0].images.at("samples"), png);
  EXPECT_EQ(events[0].image_sizes.at("samples"), (std::vector<int>{32, 258, 3}));
  EXPECT_THROW(image_event(1, 7, "samples", "GIF89a and the rest of it"), Error);
}

}  // namespace
}  // namespace zsq::formats
