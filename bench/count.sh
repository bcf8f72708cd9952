#!/usr/bin/env bash
# count.sh - instructions of a malloc(64) and its free, counted by callgrind, on several allocators.
#
# usage: count.sh [-b DIRECTORY] NAME=LIBRARY.so...
#   -b DIRECTORY   where count_pair is (build/bench)
#
# The system's malloc and an empty pair (two calls into a shared library that do nothing) come first.
# Each is run twice, TIMES and 2 * TIMES pairs: the difference is the loop alone, without start and
# end of the program. The table gives all instructions of one turn of the loop, and what is left
# without those of the empty one. Needs valgrind.
set -euo pipefail

readonly times=100000
build=$(dirname "$0")/../build/bench
while getopts b: option; do
    case $option in
    b) build=$OPTARG ;;
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

# total KIND TIMES LIBRARY: instructions of the whole run
total() {
    local out=$scratch/callgrind.out
    LD_PRELOAD=$3 valgrind --tool=callgrind --callgrind-out-file="$out" \
        "$build/count_pair" "$1" "$2" >"$scratch/log" 2>&1 || {
        echo "valgrind failed with LD_PRELOAD=$3:" >&2
        tail -n 5 "$scratch/log" >&2
        return 1
    }
    awk '/^(summary|totals):/ { print $2; exit }' "$out"
}

# per_pair KIND LIBRARY: with one decimal
per_pair() {
    local once twice
    once=$(total "$1" $times "$2")
    twice=$(total "$1" $((2 * times)) "$2")
    awk -v a="$once" -v b="$twice" -v n=$times 'BEGIN { printf "%.1f", (b - a) / n }'
}

print_row() { # NAME INSTRUCTIONS
    awk -v name="$1" -v all="$2" -v empty="$empty" 'BEGIN {
        printf "%-20s %14.1f %22.1f\n", name, all, all - empty }'
}

empty=$(per_pair empty '')
printf '%-20s %14s %22s\n' allocator instructions 'without the calls'
print_row '(empty)' "$empty"
print_row system "$(per_pair pair '')"
for peer in "$@"; do
    library=$(realpath -e "${peer#*=}")
    print_row "${peer%%=*}" "$(per_pair pair "$library")"
done
