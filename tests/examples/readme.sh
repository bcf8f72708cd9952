#!/usr/bin/env bash
# readme.sh README INCLUDE LIBRARY.so COMPILER: the program that README.md shows, built and run.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed -n '/^    #include <snug/,/^    }$/s/^    //p' "$1" >"$scratch/heap.c"
directory=$(dirname "$3")
"$4" -Wall -Wextra -Werror "$scratch/heap.c" -I"$2" -L"$directory" -lsnug -Wl,-rpath,"$directory" \
    -o "$scratch/heap"
[[ $("$scratch/heap") == "over the quota" ]]
