// SPDX-License-Identifier: Apache-2.0
#include "eval/image_files.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "core/error.h"
#include "eval/preprocess.h"
#include "eval/sources.h"

namespace zsq::eval {

Image ImageFiles::pixels(std::int64_t i) const { return read_image(file(i).path, preprocessing_); }

Batch ImageFiles::load(std::int64_t begin, std::int64_t count) const {
  Batch batch{at::empty({count, preprocessing_.channels(), preprocessing_.size.height,
                         preprocessing_.size.width},
                        at::kFloat),
              at::empty({count}, at::kLong)};
  for (std::int64_t i = 0; i < count; ++i) {
    normalize(pixels(begin + i).pixels, preprocessing_,
              batch.images.data_ptr<float>() + i * batch.images.stride(0));
    batch.labels.data_ptr<std::int64_t>()[i] = file(begin + i).label;
  }
  return batch;
}

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::bad_input, message); }

bool is_image(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpeg" || extension == ".jpg" || extension == ".png" ||
         extension == ".bmp" || extension == ".webp" || extension == ".tif" ||
         extension == ".tiff" || extension == ".ppm";
}

std::vector<fs::path> sorted_entries(const fs::path& folder,
                                     const std::function<bool(const fs::directory_entry&)>& keep) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (keep(entry)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<fs::path> image_files(const fs::path& folder) {
  return sorted_entries(
      folder, [](const auto& entry) { return entry.is_regular_file() && is_image(entry.path()); });
}

// Class number by name, from synsets.txt in the folder or its parent; empty if there is none.
std::map<std::string, std::int64_t> synset_indices(const fs::path& folder) {
  std::map<std::string, std::int64_t> index_of;
  for (const fs::path& place : {folder, folder / ".."}) {
    std::ifstream file(place / "synsets.txt");
    std::string line, name;
    for (std::int64_t index = 0; std::getline(file, line); ++index)
      if (std::istringstream(line) >> name) index_of[name] = index;
    if (!index_of.empty()) break;
  }
  return index_of;
}

std::int64_t class_index(const std::string& word,
                         const std::map<std::string, std::int64_t>& synsets,
                         const std::string& where) {
  if (const auto found = synsets.find(word); found != synsets.end()) return found->second;
  if (word.empty() || word.size() > 9 ||
      !std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }))
    refuse(where + ": '" + word + "' is neither a class number nor a line of synsets.txt");
  return std::stoll(word);
}

}  // namespace

std::unique_ptr<ImageSource> open_unlabelled_folder(const fs::path& folder,
                                                    const Preprocessing& preprocessing) {
  std::vector<LabelledFile> files;
  for (const fs::path& image : image_files(folder)) files.push_back({image, kNoLabel});
  if (files.empty()) refuse(folder.string() + " holds no image (.JPEG, .jpg, .png, ...)");
  return std::make_unique<ImageFiles>(std::move(files), preprocessing);
}

std::unique_ptr<ImageSource> open_class_folders(const fs::path& folder,
                                                const Preprocessing& preprocessing) {
  const auto classes =
      sorted_entries(folder, [](const auto& entry) { return entry.is_directory(); });
  const auto synsets = synset_indices(folder);
  std::vector<LabelledFile> files;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::string name = classes[i].filename().string();
    const auto found = synsets.find(name);
    const std::vector<fs::path> images = image_files(classes[i]);
    if (!synsets.empty() && found == synsets.end() && !images.empty())
      refuse(classes[i].string() + " holds images, but synsets.txt has no line '" + name + "'");
    const std::int64_t label = synsets.empty()          ? static_cast<std::int64_t>(i)
                               : found == synsets.end() ? 0
                                                        : found->second;
    for (const fs::path& image : images) files.push_back({image, label});
  }
  if (files.empty())
    refuse(folder.string() + " has " + std::to_string(classes.size()) +
           " class folders, but no image (.JPEG, .jpg, .png, ...) in them");
  return std::make_unique<ImageFiles>(std::move(files), preprocessing);
}

std::unique_ptr<ImageSource> open_flat_folder(const fs::path& folder, const fs::path& ground_truth,
                                              const Preprocessing& preprocessing) {
  const std::vector<fs::path> images = image_files(folder);
  const auto synsets = synset_indices(folder);
  std::ifstream file(ground_truth);
  std::vector<LabelledFile> files;
  std::string line, first, second;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line);
    if (!(words >> first)) continue;
    const std::string where = ground_truth.string() + ", line " + std::to_string(number);
    const bool named = static_cast<bool>(words >> second);
    if (!named && files.size() >= images.size())
      refuse(where + ": more classes than the " + std::to_string(images.size()) + " images");
    const fs::path image = named ? folder / first : images[files.size()];
    if (!fs::is_regular_file(image)) refuse(where + ": " + image.string() + " does not exist");
    files.push_back({image, class_index(named ? second : first, synsets, where)});
  }
  if (files.size() != images.size())
    refuse(ground_truth.string() + " names " + std::to_string(files.size()) + " images, " +
           folder.string() + " holds " + std::to_string(images.size()));
  if (files.empty()) refuse(folder.string() + " holds no image (.JPEG, .jpg, .png, ...)");
  return std::make_unique<ImageFiles>(std::move(files), preprocessing);
}

}  // namespace zsq::eval
