#!/usr/bin/env bash
# quantize_folder.sh MODELS FOLDER [FLAG...]: quantizes every network of the folder MODELS on a Slurm cluster, one
# element of a job array each, into FOLDER/<name of the file>; flags as of `zsq quantize`. What is finished is left out,
# what was stopped goes on. SBATCH_* and ZSQ as for reproduce.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
models=${1:?the folder with networks} folder=${2:?the folder for results}
shift 2
zsq=$(command -v "${ZSQ:-zsq}") || { echo "quantize_folder: ${ZSQ:-zsq} is not there; set ZSQ=<path of zsq>" >&2; exit 2; }

mkdir -p "$folder"
list=$(realpath "$folder")/models.txt
find "$(realpath "$models")" -maxdepth 1 -type f -regex '.*\.\(onnx\|pt\|pt2\|pth\|safetensors\)' | sort > "$list"
left=() number=0
while IFS= read -r model; do
  [[ -e $folder/$(basename "$model")/report.json ]] || left+=("$number")
  number=$((number + 1))
done < "$list"
[[ $number -gt 0 ]] || { echo "quantize_folder: no network (*.onnx, *.pt, *.pt2, *.pth, *.safetensors) in $models" >&2; exit 2; }
[[ ${#left[@]} -gt 0 ]] || { echo "all $number networks are quantized"; exit 0; }

array=$(sbatch --parsable --job-name=zsq-quantize --array="$(IFS=,; echo "${left[*]}")" \
  "$here/job.sh" "$here/../quantize_listed.sh" "$zsq" "$list" '{}' "$(realpath "$folder")" "$@")
echo "job array ${array%%;*}: ${#left[@]} of $number networks, listed in $list"
