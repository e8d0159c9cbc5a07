// SPDX-License-Identifier: Apache-2.0
#include "eval/coco_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/in_file.h"
#include "formats/json.h"
#include "formats/limits.h"

namespace zsq::eval {
namespace {

namespace fs = std::filesystem;
using Document = nlohmann::json;

[[noreturn]] void refuse_entry(const std::string& message) {
  throw Error(ErrorCode::bad_input, message);
}

// An object of a list, by the name that messages have for it: "annotations[3]".
class Entry {
 public:
  Entry(const Document& json, std::string name) : json_(json), name_(std::move(name)) {
    if (!json.is_object()) refuse_entry(name_ + " is no object");
  }

  const Document* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    const Document* value = find(key);
    const std::string text =
        value ? value->dump(-1, ' ', false, Document::error_handler_t::replace) : "missing";
    refuse_entry(name_ + "." + key + " is " + text.substr(0, 60) + "; expected " + expected);
  }

  std::int64_t id(const char* key) const {
    const Document* value = find(key);
    if (!value || !value->is_number_integer()) refuse(key, "an integer");
    return value->get<std::int64_t>();
  }
  double number(const char* key, double fallback) const {
    const Document* value = find(key);
    if (!value) return fallback;
    if (!value->is_number() || !(value->get<double>() >= 0)) refuse(key, "a number of 0 or more");
    return value->get<double>();
  }
  bool flag(const char* key) const {
    const Document* value = find(key);
    if (!value) return false;
    if (value->is_boolean()) return value->get<bool>();
    if (*value != 0 && *value != 1) refuse(key, "0 or 1");
    return *value == 1;
  }
  std::string text(const char* key) const {
    const Document* value = find(key);
    if (!value || !value->is_string()) refuse(key, "a text");
    return value->get<std::string>();
  }

 private:
  const Document& json_;
  std::string name_;
};

template <class Use>
void for_each_entry(const Document& root, const std::string& list, std::size_t most, Use use) {
  const auto found = root.is_object() ? root.find(list) : root.end();
  if (!root.is_object() || found == root.end() || !found->is_array())
    refuse_entry("has no list '" + list +
                 "'; expected a COCO object with images, annotations and categories");
  if (found->size() > most)
    refuse_entry("has " + std::to_string(found->size()) + " " + list + "; at most " +
                 std::to_string(most) + " are read");
  for (std::size_t i = 0; i < found->size(); ++i)
    use(Entry((*found)[i], list + "[" + std::to_string(i) + "]"));
}

std::string file_inside(const Entry& entry) {
  const fs::path file = entry.text("file_name");
  if (file.empty() || file.is_absolute() || std::ranges::find(file, "..") != file.end())
    entry.refuse("file_name", "a path below the folder of the images");
  return file.string();
}

Box box_of(const Entry& entry) {
  const Document* list = entry.find("bbox");
  const bool four = list && list->is_array() && list->size() == 4 &&
                    std::ranges::all_of(*list, [](const Document& x) { return x.is_number(); });
  if (!four) entry.refuse("bbox", "four numbers [left, top, width, height]");
  const Box box{(*list)[0], (*list)[1], (*list)[2], (*list)[3]};
  if (box.width < 0 || box.height < 0)
    entry.refuse("bbox", "a width and a height of 0 or more, in [left, top, width, height]");
  return box;
}

void read_images(const Document& root, CocoFile& file) {
  std::set<std::int64_t> ids;
  for_each_entry(root, "images", formats::kMaxAnnotatedImages, [&](const Entry& entry) {
    CocoImage image{entry.id("id"), file_inside(entry), {}, {}};
    if (!ids.insert(image.id).second) entry.refuse("id", "an id that no other image has");
    if (entry.find("width") && entry.find("height"))
      image.size = {entry.id("height"), entry.id("width")};
    file.images.push_back(std::move(image));
  });
  std::ranges::sort(file.images, {}, &CocoImage::id);
}

void read_annotations(const Document& root, CocoFile& file) {
  std::map<std::int64_t, std::int64_t> category_of;
  for (const CocoCategory& category : file.categories)
    category_of.emplace(category.id, category_of.size());
  bool any = false;
  for_each_entry(root, "annotations", formats::kMaxAnnotatedBoxes, [&](const Entry& entry) {
    const auto image =
        std::ranges::lower_bound(file.images, entry.id("image_id"), {}, &CocoImage::id);
    if (image == file.images.end() || image->id != entry.id("image_id"))
      entry.refuse("image_id", "the id of an image");
    const auto category = category_of.find(entry.id("category_id"));
    if (category == category_of.end()) entry.refuse("category_id", "the id of a category");
    const Box box = box_of(entry);
    image->boxes.push_back({box, entry.number("area", box.width * box.height), category->second,
                            entry.flag("iscrowd")});
    if (image->boxes.size() > formats::kMaxBoxesOfImage)
      refuse_entry(image->file + " has more than " + std::to_string(formats::kMaxBoxesOfImage) +
                   " boxes");
    any = true;
  });
  if (!any) refuse_entry("has no box: 'annotations' is empty, so there is nothing to measure");
}

CocoFile parse_coco(const std::string& text) {
  formats::require_shallow_json(text);
  const auto keep = [](int, Document::parse_event_t event, const Document& value) {
    return event != Document::parse_event_t::key ||
           (value != "segmentation" && value != "keypoints");
  };
  const Document root = Document::parse(text, keep, /*allow_exceptions=*/false);
  if (root.is_discarded()) refuse_entry("is no JSON");
  CocoFile file;
  std::set<std::int64_t> ids;
  for_each_entry(root, "categories", formats::kMaxAnnotatedCategories, [&](const Entry& entry) {
    file.categories.push_back({entry.id("id"), entry.text("name")});
    if (!ids.insert(file.categories.back().id).second)
      entry.refuse("id", "an id that no other category has");
  });
  read_images(root, file);
  read_annotations(root, file);
  return file;
}

}  // namespace

CocoFile read_coco(const fs::path& path) {
  std::error_code unknown;
  const auto bytes = fs::file_size(path, unknown);
  if (!unknown && bytes > formats::kMaxAnnotationBytes)
    throw Error(ErrorCode::bad_input, path.string() + " is larger than " +
                                          std::to_string(formats::kMaxAnnotationBytes >> 20) +
                                          " MiB; leave out 'segmentation', which is not read");
  const std::string text = formats::read_text(path);
  CocoFile file = formats::in_file(path, [&] { return parse_coco(text); });
  file.path = path.string();
  return file;
}

}  // namespace zsq::eval
