// SPDX-License-Identifier: Apache-2.0
// How an image becomes what a network takes, key by key. Torch-free; recipe keys "data.*".
// A key that is not given is the preset's or, if that does not have it either, the default that its
// help names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/settings.h"

namespace zsq {

// Written as 224, 240x320 (height x width) or [240, 320].
struct ImageSize {
  std::int64_t height = 0, width = 0;  // pixels
  bool operator==(const ImageSize& other) const {
    return height == other.height && width == other.width;
  }
};

enum class CropOrder { resize_then_crop, crop_then_resize, stretch, letterbox, none };
template <>
struct EnumNames<CropOrder> {
  static constexpr std::array<std::string_view, 5> names{"resize_then_crop", "crop_then_resize",
                                                         "stretch", "letterbox", "none"};
};

enum class Interpolation { nearest, box, bilinear, hamming, bicubic, lanczos };
template <>
struct EnumNames<Interpolation> {
  static constexpr std::array<std::string_view, 6> names{"nearest", "box",     "bilinear",
                                                         "hamming", "bicubic", "lanczos"};
};

enum class Resizer { pillow, opencv };
template <>
struct EnumNames<Resizer> {
  static constexpr std::array<std::string_view, 2> names{"pillow", "opencv"};
};

enum class ChannelOrder { rgb, bgr };
template <>
struct EnumNames<ChannelOrder> {
  static constexpr std::array<std::string_view, 2> names{"rgb", "bgr"};
};

enum class Decoder { opencv, opencv_exif, jpeg_ifast, jpeg_float, jpeg_nearest_chroma };
template <>
struct EnumNames<Decoder> {
  static constexpr std::array<std::string_view, 5> names{"opencv", "opencv_exif", "jpeg_ifast",
                                                         "jpeg_float", "jpeg_nearest_chroma"};
};

enum class ChromaSubsampling { none, nv12_before_resize, nv12_after_resize };
template <>
struct EnumNames<ChromaSubsampling> {
  static constexpr std::array<std::string_view, 3> names{"none", "nv12_before_resize",
                                                         "nv12_after_resize"};
};

struct PreprocessingOptions {
  std::string preset = {};  // a name or a file, see eval/preset.h; empty: none
  std::optional<ImageSize> size = {};
  std::optional<CropOrder> crop_order = {};
  std::optional<std::int64_t> resize = {};  // excludes crop_fraction
  std::optional<double> crop_fraction = {};
  std::optional<Interpolation> interpolation = {};
  std::optional<bool> antialias = {};
  std::optional<Resizer> resizer = {};
  std::optional<std::vector<double>> value_range = {}, mean = {}, std = {};
  std::optional<ChannelOrder> channel_order = {};
  std::optional<Decoder> decoder = {};
  std::optional<ChromaSubsampling> chroma_subsampling = {};
};

inline constexpr double kLargestSide = 8192;

// Every key but the preset, which stands for a set of them.
template <class Visitor, class Options>
void visit_preprocessing_keys(Visitor&& visit, Options& o) {
  visit(SettingInfo{"data.size",
                    "what the network takes: one number, or height x width as 240x320; auto: the "
                    "preset's or the model's own",
                    "pixels", 1, kLargestSide},
        o.size);
  visit(SettingInfo{"data.crop_order",
                    "resize_then_crop keeps the aspect ratio and takes the centre; "
                    "crop_then_resize takes the centre first; stretch ignores the aspect ratio; "
                    "letterbox shows the whole image, with grey (114) beside it; none expects "
                    "images of data.size; auto: the preset's, else resize_then_crop"},
        o.crop_order);
  visit(SettingInfo{"data.resize",
                    "shorter side of the whole image when data.size is cut from it, another form "
                    "of data.crop_fraction; auto: the preset's",
                    "pixels", 1, kLargestSide},
        o.resize);
  visit(SettingInfo{"data.crop_fraction",
                    "share of the shorter side that the centre crop keeps; auto: the preset's, "
                    "else 1",
                    "", 0.01, 1},
        o.crop_fraction);
  visit(SettingInfo{"data.interpolation", "resampling filter; auto: the preset's, else bilinear"},
        o.interpolation);
  visit(SettingInfo{"data.antialias",
                    "widens the filter as the image shrinks, as Pillow does; false: as PyTorch's "
                    "interpolate without antialias; of data.resizer=pillow; auto: the preset's, "
                    "else true"},
        o.antialias);
  visit(SettingInfo{"data.resizer",
                    "whose arithmetic resizes: Pillow's, or cv::resize (box: INTER_AREA, lanczos: "
                    "INTER_LANCZOS4); auto: the preset's, else pillow"},
        o.resizer);
  visit(SettingInfo{"data.value_range",
                    "values of pixels 0 and 255 before mean and std: [0, 1], [0, 255], [-1, 1]; "
                    "auto: the preset's, else [0, 1]",
                    "", -1e6, 1e6},
        o.value_range);
  visit(SettingInfo{"data.mean",
                    "subtracted per channel, in units of data.value_range and in the order of "
                    "data.channel_order; one number serves all; auto: the preset's",
                    "", -1e6, 1e6},
        o.mean);
  visit(SettingInfo{"data.std", "divides what is left, per channel; auto: the preset's", "", 1e-6,
                    1e6},
        o.std);
  visit(SettingInfo{"data.channel_order", "of the network's input; auto: the preset's, else rgb"},
        o.channel_order);
  visit(SettingInfo{"data.decoder",
                    "whose arithmetic decodes JPEG: OpenCV's (opencv_exif turns images by their "
                    "EXIF orientation), or libjpeg's with its fast or its float transform or with "
                    "chroma repeated in place of interpolated; other formats are OpenCV's; auto: "
                    "the preset's, else opencv"},
        o.decoder);
  visit(SettingInfo{"data.chroma_subsampling",
                    "sends images through NV12 as cameras and video decoders do, before or after "
                    "they are resized; auto: the preset's, else none"},
        o.chroma_subsampling);
}

template <class Visitor, class Options>
void visit_preprocessing_settings(Visitor&& visit, Options& o) {
  visit(SettingInfo{"data.preset",
                    "preprocessing by name, or a preprocessor_config.json (Hugging Face) or a "
                    "config.json of timm; the other keys here change what it says"},
        o.preset);
  visit_preprocessing_keys(visit, o);
}

}  // namespace zsq
