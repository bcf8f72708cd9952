#!/usr/bin/env bash
# gcc.sh - gcc compiles, assembles and links a large C program; object and debug data, the
# executable and what it prints are compared.
. "$(dirname "$0")/common.sh"
need gcc ld awk

scenario() {
    awk -f "$input/make_c.awk" -v functions="$(scaled 30 1500)" >large.c
    on gcc -std=c17 -O2 -g -frandom-seed=1 -c large.c -o large.o 2>messages.txt
    on gcc large.o -o large 2>>messages.txt
    on ./large >printed.txt
    on objdump -d large.o >disassembly.txt
}

runs_on_library cc1 '.*as' '.*ld(\.bfd|\.gold|\.lld)?' large '.*objdump'
compare_runs "$@"
