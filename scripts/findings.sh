#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# findings.sh [NAME...]: runs the findings named, or all of findings/, and prints a table: name, result, seconds. A finding
#   installs its packages itself, so this needs a network. Exits 1 if one of them no longer sees what its header says.
# findings.sh --check [FOLDER]: checks their form and that FOLDER/README.md lists each once, without a network.
# PYTHON=<interpreter> chooses the Python.
set -uo pipefail
folder=$(cd "$(dirname "$0")/../findings" && pwd)

# offences FILE: what its form lacks, a line each.
offences() {
  local file=$1 key
  [[ -x $file ]] || echo "is not executable"
  bash -n "$file" 2> /dev/null || echo "is not valid bash"
  [[ $(sed -n 2p "$file") == "# SPDX-License-Identifier: Apache-2.0" ]] || echo "has no licence in its second line"
  for key in Where Packages Guess Seen 'Do'; do
    grep -q "^# $key: ." "$file" || echo "has no '# $key:' in its header"
  done
  grep -q '^# > .' "$file" || echo "shows no output ('# > ') in its header"
  ! grep -qE '^# > [^[:alnum:]]*$' "$file" || echo "has a placeholder in its output: a line without a letter or digit"
  ! sed -n 's/^# Packages: //p' "$file" | tr ' ' '\n' | grep -qvE '^[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*$' ||
    echo "names a package without its exact version (name==1.2.3)"
  grep -q 'mktemp -d' "$file" && grep -q "^trap .*rm -rf .* EXIT" "$file" || echo "does not remove its temporary folder"
  ! grep -qiE '\bzsq\b|build/(release|bin)' "$file" || echo "uses the product; a finding is about other software"
  (( $(grep -c "^| \[$(basename "$file" .sh)\](" "$(dirname "$file")/README.md") == 1 )) || echo "has no row of its own in README.md"
}

check_all() {
  local file name line failed=0 found=0
  for file in "$folder"/*.sh; do
    [[ -e $file ]] || break
    found=$((found + 1))
    while read -r line; do
      echo "$(basename "$file") $line"
      failed=1
    done < <(offences "$file")
  done
  while read -r name; do
    [[ -e $folder/$name.sh ]] || { echo "README.md lists $name, which is not there"; failed=1; }
  done < <(sed -nE 's/^\| \[([a-z0-9_]+)\]\(.*/\1/p' "$folder/README.md")
  (( found > 0 )) || { echo "there is no finding in $folder"; failed=1; }
  (( failed )) || echo "$found findings have the form"
  return "$failed"
}

run_all() {
  local name begin result failed=0
  local log
  log=$(mktemp)
  printf '%-38s %-8s %s\n' finding result seconds
  for name in "$@"; do
    begin=$SECONDS result="as seen"
    "$folder/$name.sh" > "$log" 2>&1 || { result=CHANGED failed=1; }
    printf '%-38s %-8s %7d\n' "$name" "$result" $((SECONDS - begin))
    [[ $result == "as seen" ]] || sed 's/^/    /' "$log"
  done
  rm -f "$log"
  return "$failed"
}

if [[ ${1:-} == --check ]]; then
  [[ -z ${2:-} ]] || folder=$(cd "$2" && pwd)
  check_all
  exit
fi
names=("$@")
if (( $# == 0 )); then
  for file in "$folder"/*.sh; do names+=("$(basename "$file" .sh)"); done
fi
for name in "${names[@]}"; do
  [[ -e $folder/$name.sh ]] || { echo "findings.sh: there is no findings/$name.sh" >&2; exit 2; }
done
run_all "${names[@]}"
