#!/usr/bin/env bash
# quantize_listed.sh ZSQ LIST K FOLDER [FLAG...]: quantizes the network in line K, from 0, of the file LIST into
# FOLDER/<name of its file>, as one element of a job array does.
set -euo pipefail
zsq=$1 list=$2 number=$3 folder=$4
shift 4
mapfile -t models < "$list"
[[ $number =~ ^[0-9]+$ && $number -lt ${#models[@]} ]] ||
  { echo "quantize_listed: $list has ${#models[@]} lines, none with number $number" >&2; exit 2; }
exec "$zsq" quantize "${models[number]}" -o "$folder/$(basename "${models[number]}")" --resume "$@"
