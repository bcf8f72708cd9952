#!/usr/bin/env bash
# deepbind.sh LIBRARY WITNESS PROGRAM PLUGIN - a program and a plugin that it opens with RTLD_DEEPBIND,
# each of which frees what the other has allocated (trap 4, tests/traps/deepbind.c).
. "$(dirname "$0")/common.sh"
program=$3 plugin=$4

scenario() {
    on "$program" exchange "$plugin" >printed.txt
}

runs_on_library "$(basename "$program")"
compare_runs "$1" "$2"
