#!/usr/bin/env bash
# texts.sh LIBRARY WITNESS PROGRAM - the program that prints what it keeps in blocks (texts.c).
. "$(dirname "$0")/common.sh"
program=$3

scenario() {
    on "$program" >printed.txt
}

runs_on_library "$(basename "$program")"
compare_runs "$1" "$2"
