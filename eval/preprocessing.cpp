// SPDX-License-Identifier: Apache-2.0
#include "eval/preprocessing.h"

#include <algorithm>

#include "core/error.h"
#include "eval/preset.h"

namespace zsq::eval {
namespace {

[[noreturn]] void refuse_settings(const std::string& message) {
  throw Error(ErrorCode::usage, message);
}

[[noreturn]] void refuse_unknown() {
  std::string known;
  for (const std::string& name : preset_names()) known += (known.empty() ? "" : ", ") + name;
  refuse_settings(
      "the preprocessing of the images is not known; give --preset with a name (" + known +
      ") or a file (preprocessor_config.json, config.json of timm), or at least the keys "
      "data.mean and data.std (`zsq recipes --settings` lists all)");
}

// The same key of two structs, one after the other.
template <class Visitor, class To, class From>
void for_each_key(Visitor&& visit, To& to, const From& from) {
  visit(to.size, from.size);
  visit(to.crop_order, from.crop_order);
  visit(to.resize, from.resize);
  visit(to.crop_fraction, from.crop_fraction);
  visit(to.interpolation, from.interpolation);
  visit(to.antialias, from.antialias);
  visit(to.resizer, from.resizer);
  visit(to.value_range, from.value_range);
  visit(to.mean, from.mean);
  visit(to.std, from.std);
  visit(to.channel_order, from.channel_order);
  visit(to.decoder, from.decoder);
  visit(to.chroma_subsampling, from.chroma_subsampling);
}

struct TakeGiven {
  template <class T>
  void operator()(std::optional<T>& to, const std::optional<T>& from) const {
    if (from) to = from;
  }
  template <class T>
  void operator()(T& to, const std::optional<T>& from) const {
    if (from) to = *from;
  }
  template <std::size_t n>
  void operator()(std::array<double, n>& to, const std::optional<std::vector<double>>& from) const {
    if (!from) return;
    if (from->size() != n)
      refuse_settings("data.value_range is two numbers, the values of pixels 0 and 255; " +
                      std::to_string(from->size()) + " were given");
    std::copy_n(from->begin(), n, to.begin());
  }
};

struct Give {
  template <class T>
  void operator()(std::optional<T>& to, const T& from) const {
    to = from;
  }
  template <std::size_t n>
  void operator()(std::optional<std::vector<double>>& to, const std::array<double, n>& from) const {
    to.emplace(from.begin(), from.end());
  }
};

// One number stands for all channels, and equal ones for that of a grey image. Averages of three
// would be a preprocessing that nobody trained with.
std::vector<double> per_channel(const std::string& key, const std::vector<double>& given,
                                std::size_t channels, const std::string& preset) {
  if (given.size() == channels) return given;
  if (!given.empty() && std::count(given.begin(), given.end(), given[0]) == std::ssize(given) &&
      (given.size() == 1 || channels == 1))
    return std::vector<double>(channels, given[0]);
  if (channels == 3 && preset.empty())
    refuse_settings("data.mean and data.std are one number or three, one per channel; " +
                    std::to_string(given.size()) + " were given");
  refuse_settings(
      key + (preset.empty() ? "" : " of the preset '" + preset + "'") + " has " +
      std::to_string(given.size()) + " numbers, the network takes images of " +
      std::to_string(channels) + (channels == 1 ? " channel" : " channels") +
      ": give data.mean and data.std of one number, or of one per channel, as it was trained "
      "with (--set data.mean=0.5 --set data.std=0.5)");
}

// resize and crop_fraction say the same.
bool is_complete(const PreprocessingOptions& options) {
  int missing = 0;
  visit_preprocessing_keys([&](const SettingInfo&, const auto& value) { missing += !value; },
                           options);
  return missing <= 1 && (options.resize || options.crop_fraction);
}

void check(const Preprocessing& p) {
  const auto& [lowest, highest] = p.value_range;
  if (!(lowest < highest))
    refuse_settings("data.value_range: the value of pixel 0 has to be below that of pixel 255");
  if (*std::min_element(p.std.begin(), p.std.end()) <= 0)
    refuse_settings("data.std: a deviation is above 0");
  if (p.size.height < 1 || p.size.width < 1)
    refuse_settings("the size of the images is not known: give data.size");
  const auto shorter = std::min(p.size.height, p.size.width);
  if (p.resize > 0 && p.resize < shorter && p.crop_order != CropOrder::none)
    refuse_settings(
        "data.resize (" + std::to_string(p.resize) + ") is below the shorter side of data.size (" +
        std::to_string(shorter) +
        "), which is cut from it; give the side that goes with the size, or data.crop_fraction");
}

}  // namespace

double Preprocessing::value(double pixel, std::size_t c) const {
  const auto& [lowest, highest] = value_range;
  return (lowest + pixel * (highest - lowest) / 255 - mean[c]) / std[c];
}

double Preprocessing::share(double value, std::size_t c) const {
  const auto& [lowest, highest] = value_range;
  return (value * std[c] + mean[c] - lowest) / (highest - lowest);
}

std::pair<double, double> Preprocessing::value_limits() const {
  std::pair<double, double> limits{value(0, 0), value(255, 0)};
  for (std::size_t c = 1; c < mean.size(); ++c) {
    limits.first = std::min(limits.first, value(0, c));
    limits.second = std::max(limits.second, value(255, c));
  }
  return limits;
}

bool is_given(const PreprocessingOptions& options) {
  bool given = !options.preset.empty();
  visit_preprocessing_keys(
      [&](const SettingInfo&, const auto& value) { given |= value.has_value(); }, options);
  return given;
}

PreprocessingOptions overlay(PreprocessingOptions base, const PreprocessingOptions& over) {
  if (over.resize) base.crop_fraction.reset();
  if (over.crop_fraction) base.resize.reset();
  for_each_key(TakeGiven(), base, over);
  if (!over.preset.empty()) base.preset = over.preset;
  return base;
}

Preprocessing resolve(const PreprocessingOptions& given, const ImageSize& own,
                      std::int64_t channels) {
  if (!is_given(given)) refuse_unknown();
  if (given.resize && given.crop_fraction)
    refuse_settings(
        "data.resize and data.crop_fraction say the same in two ways; give one of them");
  const bool opens = !given.preset.empty() && !is_complete(given);
  const PreprocessingOptions keys = opens ? overlay(preset(given.preset, own), given) : given;
  if (!keys.mean || !keys.std) refuse_unknown();
  Preprocessing result;
  result.name = given.preset;
  result.size = own;
  for_each_key(TakeGiven(), result, keys);
  if (channels == 0) channels = is_complete(given) ? result.channels() : 3;
  const auto n = static_cast<std::size_t>(channels);
  result.mean = per_channel("data.mean", result.mean, n, given.mean ? "" : given.preset);
  result.std = per_channel("data.std", result.std, n, given.std ? "" : given.preset);
  check(result);
  return result;
}

PreprocessingOptions to_options(const Preprocessing& preprocessing) {
  PreprocessingOptions options;
  options.preset = preprocessing.name;
  for_each_key(Give(), options, preprocessing);
  if (preprocessing.resize > 0)
    options.crop_fraction.reset();
  else
    options.resize.reset();
  return options;
}

}  // namespace zsq::eval
