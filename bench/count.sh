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

command -v valgrind >/dev/null || {
    echo "count.sh needs valgrind" >&2
    exit 2
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

names=(system) libraries=('')
for peer in "$@"; do
    names+=("${peer%%=*}")
    libraries+=("$(realpath -e "${peer#*=}")")
done

# total CALL TIMES LIBRARY: instructions of the whole run
total() {
    local out=$scratch/callgrind.out
    LD_PRELOAD=$3 valgrind --tool=callgrind --callgrind-out-file="$out" \
        "$build/count_calls" "$1" "$2" >"$scratch/log" 2>&1 || {
        echo "valgrind failed with LD_PRELOAD=$3:" >&2
        tail -n 5 "$scratch/log" >&2
        return 1
    }
    awk '/^(summary|totals):/ { print $2; exit }' "$out"
}

# per_turn CALL LIBRARY: with one decimal
per_turn() {
    local once twice
    once=$(total "$1" $times "$2")
    twice=$(total "$1" $((2 * times)) "$2")
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
