# Completion of zsq in bash. Verbs, flags, recipes and settings are asked from the program, so that they are
# those of the installed version. `cmake --install` puts this file where bash-completion finds it; for one shell:
#   source scripts/completion.bash
_zsq() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} zsq=${COMP_WORDS[0]} verb=${COMP_WORDS[1]}
  local words=""
  if ((COMP_CWORD == 1)); then
    words="$("$zsq" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z_]*\) .*/\1/p') --help --version"
  elif [[ $previous == --recipe || $verb == recipes && $current != -* ]]; then
    words=$("$zsq" recipes --all 2>/dev/null | sed -n 's/^  \([^ ]*\) .*/\1/p')
  elif [[ $previous == --effort ]]; then
    words="seconds minute minutes half_hour"
  elif [[ $previous == --set && $current != *=* ]]; then
    words=$("$zsq" recipes --settings 2>/dev/null | sed -n 's/^\([a-z][a-z_.]*\): .*/\1=/p')
    compopt -o nospace 2>/dev/null
  elif [[ $previous == --target ]]; then
    words=$("$zsq" "$verb" --help 2>/dev/null | sed -n 's/^ *--target \([a-z0-9|]*\).*/\1/p' | tr '|' ' ')
  elif [[ $current == -* ]]; then
    words=$("$zsq" "$verb" --help 2>/dev/null | grep -o -- '--[a-z][a-z0-9_]*' | sort -u)
  fi
  COMPREPLY=()
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _zsq zsq
