// SPDX-License-Identifier: Apache-2.0
// Whole files with one fault each, through the loaders that a user calls: each is read or refused
// with an Error that blames the file, in bounded memory. 250 faults per container, always the same.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/process_status.h"
#include "eval/coco_file.h"
#include "eval/image.h"
#include "eval/preprocessing.h"
#include "eval/sources.h"
#include "formats/atomic_file.h"
#include "formats/npy.h"
#include "formats/pth.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "recipes/recipe.h"
#include "tests/support/network_builder.h"
#include "tests/support/networks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

constexpr int kMutations = 250;

// A flipped bit, a cut, a length made huge, a block twice, left out or zeroed. Every second one
// lies in the first or last kilobytes, where files keep what describes the rest.
class Mutator {
 public:
  explicit Mutator(std::string_view bytes) : bytes_(bytes) {}

  std::string next() {
    std::string changed(bytes_);
    const auto at = place(), length = std::min(below(64) + 1, changed.size() - at);
    switch (below(6)) {
      case 0:
        for (auto flips = below(8) + 1; flips > 0; --flips)
          changed[std::min(at + below(16), changed.size() - 1)] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        changed.resize(at);
        break;
      case 2: {
        constexpr std::uint64_t kNumbers[] = {0,          0xffff,     0x7fffffff, 0xffffffff,
                                              1ULL << 40, ~0ULL >> 1, ~0ULL};
        const auto number = kNumbers[below(std::size(kNumbers))];
        const auto width = std::min<std::size_t>(std::size_t{1} << below(4), changed.size() - at);
        changed.replace(at, width, reinterpret_cast<const char*>(&number), width);
        break;
      }
      case 3:
        changed.insert(place(), std::string(changed, at, length));
        break;
      case 4:
        changed.erase(at, length);
        break;
      default:
        std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
    }
    return changed;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::size_t place() {
    const auto near = std::min<std::size_t>(bytes_.size(), 4096);
    if (below(2) == 0) return below(bytes_.size());
    return below(2) == 0 ? below(near) : bytes_.size() - 1 - below(near);
  }

  std::string_view bytes_;
  std::mt19937 random_{16};
};

// Memory beyond what the process has now. The sanitizers need more of it than any limit here.
void limit_memory(rlim_t bytes) {
#ifndef __SANITIZE_ADDRESS__
  const rlimit limit{static_cast<rlim_t>(status_bytes("VmSize").value()) + bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
#else
  static_cast<void>(bytes);
#endif
}

using Load = std::function<void(const fs::path&)>;

// In a process of its own, whose exit status is 0 if nothing went wrong.
[[noreturn]] void read_all(const std::string& bytes, const Load& load) {
  const test::TempFolder folder;
  load(folder.file("whole", bytes));
  limit_memory((512 << 20) + 16 * bytes.size());
  Mutator mutator(bytes);
  int refused = 0, wrong = 0;
  for (int i = 0; i < kMutations; ++i) {
    const auto path = folder.file("changed", mutator.next());
    try {
      load(path);
    } catch (const Error& error) {
      ++refused;
      // The allocator's own refusal can come as an error of the file.
      const bool memory = std::string_view(error.what()).find("allocate") != std::string_view::npos;
      if (!memory && (exit_code(error.code()) == 2 || exit_code(error.code()) == 4)) continue;
      std::cerr << "mutation " << i << ": " << error.what() << '\n';
      ++wrong;
    } catch (const std::exception& error) {
      std::cerr << "mutation " << i << ", no Error: " << error.what() << '\n';
      ++wrong;
    }
  }
  std::cerr << refused << " of " << kMutations << " refused\n";
  fs::remove_all(folder.path());
  std::exit(wrong > 0 || refused < 10 ? 1 : 0);
}

void expect_survived(const std::string& bytes, const Load& load) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_FALSE(bytes.empty());
  EXPECT_EXIT(read_all(bytes, load), testing::ExitedWithCode(0), "refused");
}

// 8 x 8 grey pixels, baseline, with the smallest tables that are valid.
const std::string kJpeg =
    "\xff\xd8\xff\xdb" + std::string("\0\x43\0", 3) + std::string(64, '\1') +
    std::string("\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0\xff\xc4\0\x14\0\1", 19) +
    std::string(15, '\0') + std::string("\x09\xff\xc4\0\x14\x10\1", 7) + std::string(16, '\0') +
    std::string("\xff\xda\0\x08\1\1\0\0\x3f\0\x55\xff\xd9", 13);

void load_model(const fs::path& path) { models::load(path); }
constexpr const char* kSmallest = "shufflenet_v2_x0_5";
void load_weights(const fs::path& path) { models::load(path, {.arch = kSmallest}); }
void load_checkpoint(const fs::path& path) { formats::read_pth(path); }
void load_pixels(const fs::path& path) {
  eval::decode_image(formats::read_file(path), path.string());
}

TEST(Mutations, Onnx) {
  const test::TempFolder folder;
  test::save_onnx(test::residual_network(), folder / "x.onnx");
  expect_survived(formats::read_text(folder / "x.onnx"), load_model);
}

TEST(Mutations, Safetensors) {
  const test::TempFolder folder;
  const auto model = models::build(kSmallest, {});
  formats::SafetensorsFile file;
  for (const auto& name : model.parameters.names())
    file.tensors.emplace_back(name, models::to_array(model.parameters.at(name)));
  formats::write_safetensors(folder / "x", file);
  expect_survived(formats::read_text(folder / "x"), load_weights);
}

// By PyTorch: checkpoints in both layouts, a TorchScript archive, an exported program, ONNX.
class MutationsOfNetworks : public testing::TestWithParam<const char*> {};

TEST_P(MutationsOfNetworks, AreReadOrRefused) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto path = test::network_path(GetParam());
  const bool weights = path.extension() == ".pth";
  expect_survived(formats::read_text(path), weights ? load_checkpoint : load_model);
}

INSTANTIATE_TEST_SUITE_P(Files, MutationsOfNetworks,
                         testing::Values("resnet20_random.pth", "resnet20_random.legacy.pth",
                                         "resnet20_random.traced.pt", "resnet20_random.pt2",
                                         "resnet20_random.onnx"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(Mutations, Npz) {
  const test::TempFolder folder;
  const std::vector<float> images(2 * 3 * 4 * 4, 0.5f);
  const std::vector<std::int64_t> labels{5, 6};
  using formats::Array;
  using formats::DType;
  formats::write_npz(folder / "x",
                     {{"images", Array::from<float>(DType::f32, {2, 3, 4, 4}, images)},
                      {"labels", Array::from<std::int64_t>(DType::i64, {2}, labels)}});
  expect_survived(formats::read_text(folder / "x"),
                  [](const fs::path& path) { eval::open_npz(path); });
}

TEST(Mutations, Recipe) {
  expect_survived(to_yaml(load_recipe("deploy")),
                  [](const fs::path& path) { load_recipe(path.string()); });
}

TEST(Mutations, CocoJson) {
  expect_survived(R"({"images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 8}],
    "categories": [{"id": 3, "name": "cat"}], "annotations": [{"image_id": 1, "category_id": 3,
    "bbox": [1, 2.5, 3, 4], "area": 7, "iscrowd": 0, "segmentation": [[1, 2]]}]})",
                  [](const fs::path& path) { eval::read_coco(path); });
}

TEST(Mutations, CifarBatch) {
  std::string record(3073, '\x7f');
  record[0] = 3;
  expect_survived(record + record + record, [](const fs::path& path) {
    const auto source = eval::open_cifar(path, eval::resolve({.preset = "cifar10"}, {32, 32}));
    source->load(0, source->size());
  });
}

#ifdef ZSQ_OPENCV

TEST(Mutations, Png) {
  eval::Image image{24, 20, std::vector<std::uint8_t>(24 * 20 * 3)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(i * i / 7);
  const auto bytes = eval::encode_png(image);
  expect_survived({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, load_pixels);
}

TEST(Mutations, Jpeg) { expect_survived(kJpeg, load_pixels); }

#endif

}  // namespace
}  // namespace zsq
