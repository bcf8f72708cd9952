#!/usr/bin/env bash
# count.sh - instructions of each call that takes, resizes or asks for a block, with the free of what
# it gave, counted by callgrind, on several allocators.
#
# usage: count.sh [-b DIRECTORY] [-c CALL]... NAME=LIBRARY.so...
#   -b DIRECTORY   where count_calls is (build/bench)
#   -c CALL        only this one of what `count_calls list` prints
#
# The system's malloc comes first. Each loop is run twice, TIMES and 2 * TIMES turns: the difference is
# the loop alone, without start and end of the program. The row `empty` is two calls into a shared
# library that do nothing: what a turn costs without an allocator. Needs valgrind.
set -euo pipefail

readonly times=20000
build=$(dirname "$0")/../build/bench
only=()
while getopts b:c: option; do
    case $option in
    b) build=$OPTARG ;;
    c) only+=("$OPTARG") ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

# shellcheck source=bench/callgrind.sh
source "$(dirname "$0")/callgrind.sh"

names=(system) libraries=('')
for peer in "$@"; do
    names+=("${peer%%=*}")
    libraries+=("$(realpath -e "${peer#*=}")")
done

# per_turn CALL LIBRARY: with one decimal
per_turn() {
    local once twice
    once=$(instructions "$2" "$build/count_calls" "$1" $times)
    twice=$(instructions "$2" "$build/count_calls" "$1" $((2 * times)))
    awk -v a="$once" -v b="$twice" -v n=$times 'BEGIN { printf "%.1f", (b - a) / n }'
}

if [ ${#only[@]} -eq 0 ]; then
    mapfile -t only < <("$build/count_calls" list)
fi
printf '%-22s' call
printf ' %12s' "${names[@]}"
echo
for call in "${only[@]}"; do
    printf '%-22s' "$call"
    for library in "${libraries[@]}"; do
        printf ' %12s' "$(per_turn "$call" "$library")"
    done
    echo
done
