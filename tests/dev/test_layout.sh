#!/usr/bin/env bash
# Tests src/layout.cmake: each change of a header or of a table makes another fingerprint, no other
# change does, and the library has the one of its sources: test_layout.sh LIBRARY.
set -euo pipefail

library=$(readlink -f "$1")
root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/src" "$work/a folder"

layout() { cmake -DSOURCES="$work/a folder" -P "$root/src/layout.cmake" 2>&1; }

# Usage: expect same|other WHAT: how the fingerprint of the copy is now, beside that of the sources.
expect() {
    local now found=other
    now=$(layout)
    if [[ $now == "$before" ]]; then found=same; fi
    if [[ $found != "$1" ]]; then
        echo "$2: the fingerprint should be $1: $before, now $now"
        exit 1
    fi
}

before=$(layout)
[[ $before =~ ^0x[0-9a-f]{8}u$ ]] || { echo "no fingerprint: $before"; exit 1; }
cd "$work/a folder"
for file in meta/meta.h magazine/cache.h base/list.h options/options.def stats/counters.def; do
    printf '/* changed */\n' >>"$file"
    expect other "$file has another line"
    cp "$root/src/$file" "$file"
    expect same "$file is as before"
done
mv base/list.h base/lists.h
expect other "a header has another name"
mv base/lists.h base/list.h
echo "/* new */" >heap/new.h
expect other "there is another header"
rm heap/new.h
echo "/* changed */" >>report/anchor.c
expect same "a source file has another line"

# In the library it stands behind the anchor's word of 12 bytes, as a little-endian number.
digits=${before:2:8}
wanted="736e75672d68656170000000${digits:6:2}${digits:4:2}${digits:2:2}${digits:0:2}"
if [[ $(od -An -v -tx1 "$library" | tr -d ' \n') != *"$wanted"* ]]; then
    echo "the anchor in $library is not that of its headers, $before"
    exit 1
fi
