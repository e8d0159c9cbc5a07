#!/usr/bin/env bash
# reproduce.sh TABLE -o FOLDER [FLAG...]: runs a table (`zsq reproduce`, same flags) on a Slurm cluster, one element of
# a job array for each cell that is not finished, and after them a job that writes the table. The folder lies where
# all nodes see it. sbatch takes partition, account, time limit and GPUs from SBATCH_PARTITION, SBATCH_ACCOUNT,
# SBATCH_TIMELIMIT, SBATCH_GPUS and the like. ZSQ=<program> if zsq is not on the PATH.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
zsq=$(command -v "${ZSQ:-zsq}") || { echo "reproduce: ${ZSQ:-zsq} is not there; set ZSQ=<path of zsq>" >&2; exit 2; }

list=$("$zsq" reproduce "$@" --list --format json)
cells=$(python3 -c '
import json, sys
cells = json.load(sys.stdin)["cells"]
lacking = [cell for cell in cells if cell["lacks"]]
if lacking:
    print(f"{len(lacking)} of {len(cells)} cells lack weights or data and are left out", file=sys.stderr)
print(",".join(str(cell["number"]) for cell in cells if not cell["lacks"] and not cell["finished"]))' <<< "$list")

submit=(sbatch --parsable --job-name=zsq-reproduce)
last=()
if [[ -n $cells ]]; then
  array=$("${submit[@]}" --array="$cells" "$here/job.sh" "$zsq" reproduce "$@" --cell '{}')
  echo "job array ${array%%;*}: cells $cells"
  last=(--dependency="afterany:${array%%;*}")
fi
table=$("${submit[@]}" "${last[@]}" --array=0 "$here/job.sh" "$zsq" reproduce "$@")
echo "job ${table%%;*}: the table, once these have ended"
