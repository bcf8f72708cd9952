#!/usr/bin/env bash
# run.sh PROGRAM EXPECTED: runs an example in a directory of its own and compares what it prints.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$1" | diff -u "$2" -
if [[ $(ls -A "$scratch") ]]; then
    echo "the example leaves files behind: $(ls -A "$scratch")" >&2
    exit 1
fi
