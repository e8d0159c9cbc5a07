// SPDX-License-Identifier: Apache-2.0
// How much a file may ask for. Sizes that a file declares are compared with the bytes that it holds
// before anything is allocated; these limits are for what remains: where few bytes stand for many,
// or where reading recurses. Each lies far above what networks need and far below what exhausts a
// machine. SECURITY.md explains the whole; tests/formats/limits_test.cpp has a file beyond each.
#pragma once
#include <cstddef>
#include <cstdint>

namespace zsq::formats {

// PyTorch knows no tensor of more dimensions.
inline constexpr std::size_t kMaxRank = 64;

// Zip: deflate packs a run of equal bytes at most 1 to 1032. Weights and images hardly shrink, so
// an archive that unfolds to many times its size is a bomb; labels and masks in small archives may.
inline constexpr std::uint64_t kMaxDeflateRatio = 1032, kMaxUnfolding = 100;
inline constexpr std::uint64_t kFreeUnfolding = 64 << 20;

// Checkpoints: tensors may share a storage, and each becomes a copy of its own.
inline constexpr std::uint64_t kMaxStorageCopies = 16;
// One module or dictionary can be named by many others, so what is collected is counted.
inline constexpr std::size_t kMaxTensors = 100'000, kMaxName = 1'000;
inline constexpr int kMaxModuleDepth = 100, kMaxModuleVisits = 100'000;

// Pickles, apart from the tensors. An opcode of one byte can make a value of about a hundred, or
// copy a text that is in the memo: so values are counted, and the bytes that copies take.
inline constexpr std::uint64_t kMaxPickleBytes = 64 << 20, kMaxPickleCopies = 128 << 20;
inline constexpr std::size_t kMaxPickleValues = 2'000'000, kMaxPickleStack = 1'000'000;
inline constexpr std::size_t kMaxPickleMarks = 1'000;

// TorchScript: the code in all files together; a byte of it can become fifty of syntax tree, whose
// depth is the depth of recursion of all that walks it.
inline constexpr std::uint64_t kMaxScriptBytes = 4 << 20;
inline constexpr int kMaxScriptDepth = 100, kMaxScriptChain = 40;
inline constexpr std::size_t kMaxScriptBlocks = 100;
// Attributes and list items of its objects, and how deep these hold each other.
inline constexpr std::size_t kMaxScriptValues = 200'000;
inline constexpr int kMaxObjectDepth = 200;

// JSON: copying and printing a document recurses. A byte can become twenty-five in memory.
inline constexpr std::size_t kMaxJsonDepth = 100;
inline constexpr std::uint64_t kMaxProgramJsonBytes = 16 << 20;      // graph of an exported program
inline constexpr std::uint64_t kMaxConfigBytes = 16 << 20;           // config.json, index of shards
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // as its reference reader has

// Annotations of images (COCO): each image and category is looked at together, each box with 100
// detections.
inline constexpr std::uint64_t kMaxAnnotationBytes = 128 << 20;
inline constexpr std::size_t kMaxAnnotatedImages = 200'000, kMaxAnnotatedBoxes = 1'000'000;
inline constexpr std::size_t kMaxBoxesOfImage = 10'000, kMaxAnnotatedCategories = 10'000;

// ONNX: an empty node or attribute takes two bytes in the file and a hundred in memory.
inline constexpr std::size_t kMaxOnnxNodes = 50'000, kMaxOnnxAttributes = 32;
inline constexpr std::size_t kMaxOnnxValues = 100'000;  // inputs and outputs of the graph
inline constexpr std::size_t kMaxOnnxDomains = 100;     // of operators
// Branches and loops that hold each other, and the names inside all of them.
inline constexpr std::size_t kMaxOnnxDepth = 16, kMaxOnnxNames = 100'000;

}  // namespace zsq::formats
