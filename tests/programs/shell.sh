#!/usr/bin/env bash
# shell.sh - bash runs a program of its own, and the tools of a shell work on a large text: awk,
# sort with threads, sed, grep, xz with threads, tar. All that comes out is compared.
. "$(dirname "$0")/common.sh"
need awk xz tar

scenario() {
    on bash "$input/shell_work.sh" "$(scaled 1500 40000)" >printed.txt 2>messages.txt
    on awk -v lines="$(scaled 40000 2000000)" 'BEGIN {
        for (seed = 5; lines > 0; lines--) {
            seed = (seed * 16807) % 2147483647
            key[seed % 5000] = key[seed % 5000] substr(seed, 1, 3)
            printf "%d %x %s\n", seed % 9973, seed, substr("some words of a text", seed % 19, 8)
        }
        for (k = 0; k < 5000; k++) print k, key[k]
    }' >text
    on sort --parallel=4 -S 1M -k3,3 -k1,1n text >sorted
    on sed -E 's/([0-9]+) ([a-f]+)/\2 \1/g; s/words? of/WORD/' text >edited
    on grep -nE '^[0-9]{3,4} .*(word|text)' text >found
    on tar --sort=name --mtime=@0 --owner=0 --group=0 -cf all.tar text sorted edited found
    on xz -T2 -1 -k --block-size=2MiB all.tar
    on xz -T2 -dc all.tar.xz | cmp - all.tar
}

runs_on_library bash '.*awk' sort sed grep tar xz
compare_runs "$@"
